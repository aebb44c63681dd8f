# SPDX-License-Identifier: Apache-2.0
"""
Very many threads that sleep, while others are born and end.

threads   how many sleep all the time
seconds   how long, after all have started
births    how many are born a second, to live `life` seconds each
"""

import threading
import time

import truth

opt = truth.options(threads=1000, seconds=5.0, births=4, life=0.5)
stop = threading.Event()


def asleep():
    stop.wait()


def alive():
    time.sleep(opt.life)


def main():
    threading.stack_size(256 * 1024)
    threads = [threading.Thread(target=asleep, name="asleep-%d" % k) for k in range(opt.threads)]
    for thread in threads:
        thread.start()
    truth.ready()
    born = []
    end = time.monotonic() + opt.seconds
    while time.monotonic() < end:
        if opt.births:
            thread = threading.Thread(target=alive, name="born-%d" % len(born))
            thread.start()
            born.append(thread)
            time.sleep(1 / opt.births)
        else:
            time.sleep(0.1)
    for thread in born:
        thread.join()
    truth.done(born=len(born), life=opt.life)
    stop.set()
    for thread in threads:
        thread.join()


main()
