# SPDX-License-Identifier: Apache-2.0
"""A small service with one slow spot, to try the profiler on: which line is it?"""
import time


def parse(line):
    name, price, amount = line.split(",")
    return name, float(price), int(amount)


def discount(price, amount):
    rate = 0.0
    for step in range(amount):  # the slow spot: a loop where a formula would do
        rate += 0.0001 * step * price / (price + 1.0)
    return min(rate, 0.25)


def total(orders):
    result = 0.0
    for line in orders:
        name, price, amount = parse(line)
        result += price * amount * (1.0 - discount(price, amount))
    return result


def report(orders):
    time.sleep(0.002)
    return total(orders)


def main():
    orders = [f"item{i},{i % 90 + 1}.5,{i % 40 + 200}" for i in range(200)]
    end = time.monotonic() + 4.0
    rounds = 0
    while time.monotonic() < end:
        report(orders)
        rounds += 1
    print(f"{rounds} reports")


if __name__ == "__main__":
    main()
