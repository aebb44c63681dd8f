# SPDX-License-Identifier: Apache-2.0
"""
Every way in which an object gets a function of its class called, each with a little work: the calls of classes that the
interpreter inlines (from 3.12 on with a frame of its own below `__init__`), those that go through C, and those of
attributes. Its facts are who may call whom, each function as [file, name].

seconds   how long
turns     of the loop of work in each function
"""

import dataclasses
import functools
import time

import truth

opt = truth.options(seconds=1.5, turns=200)
turns = range(opt.turns)


class Plain:
    def __init__(self, value):
        for _ in turns:
            pass
        self.value = value


class Base:
    def __init__(self, value):
        for _ in turns:
            pass
        self.value = value


class Derived(Base):
    def __init__(self, value):
        super().__init__(value)
        for _ in turns:
            pass


class Nested:
    def __init__(self, value):
        self.inner = Plain(value)
        for _ in turns:
            pass


class Meta(type):
    def __call__(cls, value):
        for _ in turns:
            pass
        return super().__call__(value)


class Made(metaclass=Meta):
    def __init__(self, value):
        for _ in turns:
            pass
        self.value = value


class Fresh:
    def __new__(cls, value):
        for _ in turns:
            pass
        return super().__new__(cls)

    def __init__(self, value):
        for _ in turns:
            pass


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value):
        for _ in turns:
            pass
        self.value = value


class Valued:
    @property
    def value(self):
        for _ in turns:
            pass
        return 1

    @value.setter
    def value(self, value):
        for _ in turns:
            pass


class Lazy:
    def __getattr__(self, name):
        for _ in turns:
            pass
        return name


class Sly:
    def __getattribute__(self, name):
        for _ in turns:
            pass
        return name


class Listed:
    def __getitem__(self, index):
        for _ in turns:
            pass
        return index


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0

    def __post_init__(self):
        for _ in turns:
            pass


class Managed:
    def __init__(self, value):
        for _ in turns:
            pass

    def __enter__(self):
        for _ in turns:
            pass
        return self

    def __exit__(self, *what):
        for _ in turns:
            pass


def decorator(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        for _ in turns:
            pass
        return function(*arguments)

    return wrapper


class Counted:
    def __init__(self, function):
        self.function = function

    def __call__(self, value):
        for _ in turns:
            pass
        return self.function(value)


@decorator
def wrapped(value):
    for _ in turns:
        pass
    return Plain(value)


@Counted
def counted(value):
    for _ in turns:
        pass
    return value


def drive(until):
    valued, lazy, sly, listed = Valued(), Lazy(), Sly(), Listed()
    while time.monotonic() < until:
        Plain(1)
        Derived(2)
        Nested(3)
        Made(4)
        Fresh(5)
        Slotted(6)
        valued.value = valued.value
        lazy.missing
        sly.anything
        listed[0]
        Point(7)
        with Managed(8):
            pass
        wrapped(9)
        counted(10)


def place(function):
    code = function.__code__
    return [code.co_filename, getattr(code, "co_qualname", code.co_name)]


MODULE = [__file__, "<module>"]
EDGES = [[MODULE, place(drive)]]
for outer, inner in (
    (drive, Plain.__init__),
    (drive, Derived.__init__),
    (Derived.__init__, Base.__init__),
    (drive, Nested.__init__),
    (Nested.__init__, Plain.__init__),
    (drive, Meta.__call__),
    (Meta.__call__, Made.__init__),
    (drive, Fresh.__new__),
    (drive, Fresh.__init__),
    (drive, Slotted.__init__),
    (drive, Valued.value.fget),
    (drive, Valued.value.fset),
    (drive, Lazy.__getattr__),
    (drive, Sly.__getattribute__),
    (drive, Listed.__getitem__),
    (drive, Point.__init__),
    (Point.__init__, Point.__post_init__),
    (drive, Managed.__init__),
    (drive, Managed.__enter__),
    (drive, Managed.__exit__),
    (drive, wrapped),
    (wrapped, wrapped.__wrapped__),
    (wrapped.__wrapped__, Plain.__init__),
    (drive, Counted.__call__),
    (Counted.__call__, counted.function),
):
    EDGES.append([place(outer), place(inner)])

truth.ready(edges=EDGES, file=__file__, open=[MODULE])
drive(time.monotonic() + opt.seconds)
truth.done()
