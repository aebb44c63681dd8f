# SPDX-License-Identifier: Apache-2.0
"""Makes the recorded runs in tests/engine/data/recorded: record.py AU_RECORD [INTERPRETER...]

Starts each interpreter on a quiet program of four threads, records a run of the engine on it, and keeps the log and the
stacks only if they equal what the program says of itself (sys._current_frames, co_positions).
"""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))

PROGRAM = r'''
import json, sys, threading, time
ready = threading.Semaphore(0)
stop = threading.Event()
def park():
    ready.release()
    stop.wait()
def deep(n):
    if n:
        return deep(n - 1)
    park()
def numbers():
    yield park()
def chain():
    yield from numbers()
class Näme:
    def データ(self):
        (lambda: park())()
work = {"deep": lambda: deep(40), "generators": lambda: list(chain()), "letters": lambda: Näme().データ()}
threads = [threading.Thread(target=w, name="Worker-" + n, daemon=True) for n, w in work.items()]
for t in threads: t.start()
for t in threads: ready.acquire()
time.sleep(0.3)
frames = sys._current_frames()
truth = {}
for t in threads:
    f, stack = frames[t.ident], []
    while f:
        c = f.f_code
        if sys.version_info >= (3, 11):
            l, le, col, ce = list(c.co_positions())[f.f_lasti // 2]
            place = [l or 0, le or 0, 0 if col is None else col + 1, 0 if ce is None else ce + 1]
            scope = c.co_qualname
        else:
            place, scope = [f.f_lineno, 0, 0, 0], c.co_name
        stack.append([c.co_filename, scope] + place)
        f = f.f_back
    truth[t.name] = stack[::-1]
del frames, f
print(json.dumps(truth), flush=True)
time.sleep(60)
'''


def record(tool, name, command, env, root, out):
    place = os.path.join(root or "/", "tmp")
    with tempfile.NamedTemporaryFile("w", suffix=".py", dir=place, encoding="utf-8") as source:
        source.write(PROGRAM)
        source.flush()
        path = "/tmp/" + os.path.basename(source.name)
        process = subprocess.Popen(command + [path], env=env, stdout=subprocess.PIPE)
        try:
            truth = json.loads(process.stdout.readline())
            log = os.path.join(out, name + ".log")
            text = subprocess.run([tool, str(process.pid), log, "interpreter=%s\ncommand=record.py" % name],
                                  stdout=subprocess.PIPE, check=True).stdout.decode()
        finally:
            process.kill()
            process.wait()
    lines = {}
    for line in text.splitlines():
        iid, thread, *rest = line.split("|")
        lines[thread] = [[rest[i], rest[i + 1]] + [int(x) for x in rest[i + 2:i + 6]] for i in range(0, len(rest), 6)]
    for thread, stack in truth.items():
        if lines.get(thread) != stack:
            raise SystemExit("%s: %s is %s, and says of itself %s" % (name, thread, lines.get(thread), stack))
    with open(os.path.join(out, name + ".txt"), "w", encoding="utf-8") as file:
        file.write(text)
    print(name, os.path.getsize(log), "bytes,", len(lines), "threads")


if __name__ == "__main__":
    out = os.path.join(HERE, "data", "recorded")
    os.makedirs(out, exist_ok=True)
    tool, specs = sys.argv[1], sys.argv[2:]
    for spec in specs:  # NAME=ROOT:PYTHON, ROOT empty or a directory for chroot
        name, rest = spec.split("=", 1)
        root, python = rest.split(":", 1)  # of neutral places: their paths become part of the recording
        command = ["chroot", root, python] if root else [python]
        env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONUTF8": "1"}
        if not root:  # an unpacked one: its home is where it lies
            env["PYTHONHOME"] = env["LD_LIBRARY_PATH"] = os.path.dirname(os.path.dirname(python))
        record(tool, name, command, env, root, out)
