# SPDX-License-Identifier: Apache-2.0
"""The command line: what it takes, what it refuses, what it says, and its exit statuses."""

import os
import pty
import select
import shutil
import signal
import subprocess
import time

import mojo

from harness import Failure, Skip, need, shown, test

NOT_ON_WINDOWS = "its words, paths and devices are POSIX; test_windows.py has what is the same there"
from interpreters import catalogue


def refused(box, arguments, code, *needles, env=None, stdin=None, timeout=15):
    run = box.austin(arguments, env=env, timeout=timeout, stdin=stdin or subprocess.DEVNULL)
    need(run.code == code, "austin %s: %s instead of %d", arguments, run.text(), code)
    low = (run.errors + run.out).lower()
    for needle in needles:
        need(str(needle).lower() in low, "austin %s: %r is not in %s", arguments, needle, run.text())
    return run


@test()
def test_no_arguments(box):
    run = box.austin([])
    need(run.code == 0 and "Usage:" in run.out and not run.errors, "%s", run.text())


@test()
def test_help_and_version(box):
    for option in ("-?", "--help"):
        run = box.austin([option])
        need(run.code == 0 and "Usage:" in run.out and "--interval" in run.out, "%s: %s", option, run.text())
        need(max(map(len, run.out.splitlines())) <= 80, "%s is wider than 80 columns", option)
    run = box.austin(["--usage"])
    need(run.code == 0 and run.out.strip() and len(run.out.splitlines()) < 15, "--usage: %s", run.text())
    for option in ("-V", "--version"):
        run = box.austin([option])
        need(run.code == 0 and run.out == "austin 5.0.0\n", "%s: %s", option, run.text())


@test()
def test_neither_command_nor_pid(box):
    refused(box, ["-i", "1ms"], 6, "command", "pid")


@test()
def test_bad_usage(box):
    for arguments in (
        ["--nonsense"],
        ["-p", "1", "python3"],
        ["-i"],
        ["-i", "-1", "true"],
        ["-i", "-1ms", "true"],
        ["-i", "1.5ms", "true"],
        ["-i", "1xs", "true"],
        ["-i", "", "true"],
        ["-i", "ms", "true"],
        ["-i", "99999999999999999999999", "true"],
        ["-x", "-1", "true"],
        ["-x", "abc", "true"],
        ["-t", "abc", "true"],
        ["-p", "0"],
        ["-p", "12x"],
        ["-p", "-5"],
        ["-p", "abc"],
        ["--cpu=1", "true"],
        ["--inter=1ms", "true"],
        ["--interval"],
        ["-mem", "python3", "x.py"],
        ["-o"],
    ):
        refused(box, arguments, 64, "--help")


@test()
def test_not_available_yet(box):
    for option in (
        "-C",
        "-f",
        "-g",
        "-k",
        "-m",
        "-n",
        "--children",
        "--full",
        "--gc",
        "--kernel",
        "--memory",
        "--native",
    ):
        refused(box, [option, "true"], 64, "not available yet")
    refused(box, ["-w", "1"], 64, "not available yet")


@test("one")
def test_every_way_to_write_an_option(box):
    for words in (
        ["-i1ms"],
        ["-i", "1ms"],
        ["-i=1ms"],
        ["--interval=1ms"],
        ["--interval", "1ms"],
        ["-Pi", "1ms"],
        ["-i", "1000"],
        ["-i", "1000us"],
        ["-i", "1ms", "-t", "100ms"],
        ["-i1ms", "-t", "2s"],
        ["-i1ms", "--"],
        ["-i1ms", "-x", "60"],
        ["-i1ms", "-x", "60s"],
        ["--interval=1ms", "--timeout=3000"],
    ):
        path = box.path()
        run = box.austin(["-o", path] + words + box.command("steady.py", seconds=0.3), path=path)
        need(run.code == 0, "%s: %s", words, run.text())
        need(dict(mojo.read(path).metadata)["interval"] == "1000", "%s: metadata %s", words, mojo.read(path).metadata)
    for words, interval in ((["-i", "0"], "0"), (["-i", "1s"], "1000000"), (["-i7us"], "7"), ([], "100")):
        path = box.path()
        box.austin(["-o", path] + words + box.command("steady.py", seconds=0.3), path=path)
        need(dict(mojo.read(path).metadata)["interval"] == interval, "%s: metadata %s", words, mojo.read(path).metadata)


@test("one")
def test_the_command_keeps_its_own_options(box):
    path = box.path()
    script = os.path.join(box.dir, "argv.py")
    with open(script, "w") as handle:
        handle.write("import sys, time\nprint(sys.argv[1:], flush=True)\ntime.sleep(0.3)\n")
    for before in ([], ["--"]):
        run = box.austin(
            ["-i", "1ms", "-o", path] + before + box.interp.argv + [box.interp.inside(script), "-p", "3", "--help"]
        )
        need(run.code == 0 and "['-p', '3', '--help']" in run.out, "%s", run.text())


@test()
def test_bad_command(box):
    run = refused(box, ["-o", box.path(), "no-such-command-at-all"], 1, "Cannot launch", "no-such-command-at-all")
    need(run.errors.count("Cannot launch") == 1, "said twice: %s", run.text())
    script = os.path.join(box.dir, "not-executable")
    open(script, "w").close()
    refused(box, ["-o", box.path(), script], 1, "Cannot launch")


@test("one")
def test_little_of_everything(box):
    """Each number of descriptors and each size of memory: it works, or what is missing is named with its limit."""
    import resource

    path = box.path()
    target = box.start("steady.py", seconds=0)

    def tried(what, limit, arguments, remedies):
        run = box.austin(
            ["-P", "-i", "1ms", "-o", path] + arguments,
            preexec_fn=lambda: resource.setrlimit(what, (limit, limit)),
        )
        if run.code in (0, 254):
            return True
        if "shared librar" not in run.errors and "relocation" not in run.errors and "mmap" not in run.errors:
            # else it was the dynamic linker
            need(any(r in run.errors for r in remedies), "limit %d, %s: %s", limit, arguments, run.text())
        return False

    launch = box.command("steady.py", seconds=0.2)
    attach = ["-x", "100ms", "-p", target.pid]
    for arguments in (launch, attach):
        works = [tried(resource.RLIMIT_NOFILE, limit, arguments, ["ulimit -n"]) for limit in range(4, 24)]
        need(works[-1] and not works[0], "%s: %s", arguments, works)
    works = [tried(resource.RLIMIT_AS, limit << 20, attach, ["ulimit -v"]) for limit in (4, 6, 9, 13, 18, 30, 60)]
    need(works[-1], "60 MiB are not enough: %s", works)


@test()
def test_bad_pid(box):
    with open("/proc/sys/kernel/pid_max") as handle:
        largest = int(handle.read())
    for pid in (largest - 1, 9_999_999_999):
        refused(
            box, ["-o", box.path(), "-p", pid], 64 if pid > 2**31 else 1, *([] if pid > 2**31 else ["Cannot attach"])
        )


@test()
def test_no_python(box):
    began = time.monotonic()
    refused(box, ["-o", box.path(), "-t", "300ms", "bash", "-c", "sleep 2; true"], 10, "not a Python")
    need(time.monotonic() - began < 8, "it took %.1f s", time.monotonic() - began)
    sleeper = box.spawn(["sleep", "20"])
    refused(box, ["-o", box.path(), "-t", "300ms", "-p", sleeper.pid], 10, "not a Python", sleeper.pid)
    need(sleeper.alive(), "the process that is no Python was ended")


@test()
def test_too_short(box):
    refused(box, ["-o", box.path(), "true"], 1, "too quickly")


@test("every", tier="ci")
def test_short_program(box):
    """A program of a few milliseconds: either it was caught or it is said to be too quick, never anything else."""
    path = box.path()
    for _ in range(10):
        run = box.austin(["-o", path] + box.command("tiny.py"))
        need(run.code == 0 or (run.code == 1 and "too quickly" in run.errors), "%s", run.text())
        need(run.out.startswith("1\n"), "the program's own output is missing: %s", run.text())
        if os.path.exists(path) and os.path.getsize(path):
            mojo.read(path)


@test()
def test_environment(box):
    refused(
        box, ["-o", box.path(), "true"], 7, "AUSTIN_PAGE_SIZE_CAP", "banana", env={"AUSTIN_PAGE_SIZE_CAP": "banana"}
    )


@test("one")
def test_environment_that_is_good(box):
    for extra in ({"AUSTIN_PAGE_SIZE_CAP": "1024"}, {"AUSTIN_NO_LOGGING": "1"}):
        run = box.launch("steady.py", "-i", "1ms", seconds=0.4, env=extra)
        need(len(box.stream(run).samples) > 50, "%s: too few samples", extra)


@test("one")
def test_unwritable_output(box):
    for path in (os.path.join(box.dir, "no", "such", "folder.mojo"), box.dir):
        run = refused(box, ["-o", path] + box.command("steady.py", seconds=0.5), 5, path)
        need("ready" not in run.out, "the program was started although its samples have nowhere to go")
        need(len(run.errors.strip().splitlines()) == 2, "no remedy: %s", run.text())
    target = box.start("steady.py", seconds=0)
    refused(box, ["-o", "/proc/nothing/here", "-p", target.pid], 5, "/proc/nothing/here")
    run = refused(box, ["-o", os.path.join(__file__, "a.mojo"), "-p", target.pid], 5, "is a file")
    need("create" not in run.errors, "a wrong remedy: %s", run.text())
    run = refused(box, ["-o", "/proc/here.mojo", "-p", target.pid], 5, "another folder")
    need("reate" not in run.errors, "a wrong remedy: %s", run.text())
    run = refused(box, ["-o", box.path(), box.dir], 1, "It is a folder")


@test("one")
def test_current_folder_is_gone(box):
    """No folder that could be created is missing then, and an absolute path helps."""
    target = box.start("steady.py", seconds=0)
    gone = os.path.join(box.dir, "gone")
    path = box.path()
    for name, code in (("a.mojo", 5), ("./a.mojo", 5), (path, 254)):
        os.mkdir(gone)
        process = box.spawn(
            ["sh", "-c", 'cd "$0" && rmdir "$0" && exec "$@"', gone, *box.config["austin"]]
            + ["-x", "300ms", "-i", "1ms", "-o", name, "-p", str(target.pid)]
        )
        got = process.wait(20)
        need(got == code, "%s: exit status %d instead of %d: %s", name, got, code, process.errors())
        if code == 5:
            need("absolute path" in process.errors(), "%s: no remedy: %s", name, process.errors())
            need("current folder" in process.errors(), "%s: no cause: %s", name, process.errors())
            need("create" not in process.errors(), "%s: a wrong remedy: %s", name, process.errors())
    need(box.stream(path).samples, "no samples")


@test("one")
def test_old_profile_stays_until_there_is_a_new_one(box):
    """Whatever ends a run before an interpreter was found: the file is what it was, or is not there."""
    script = os.path.join(box.dir, "not-executable")
    open(script, "w").close()
    sleeper = box.spawn(["sleep", "30"])
    failing = (
        (1, ["no-such-command-at-all"]),
        (1, [script]),
        (1, ["true"]),
        (1, ["-p", 2**22 - 1]),
        (10, ["-t", "200ms", "-p", sleeper.pid]),
        (10, ["-P", "-t", "200ms", "sh", "-c", "sleep 1; true"]),
    )
    old = os.urandom(100000)
    for name in ("old.mojo", "old.mojo.zst"):
        path = box.path(name)
        for code, arguments in failing:
            with open(path, "wb") as handle:
                handle.write(old)
            refused(box, ["-o", path] + arguments, code)
            with open(path, "rb") as handle:
                need(handle.read() == old, "%s: %s has changed", arguments, name)
            os.unlink(path)
            refused(box, ["-o", path] + arguments, code)
            need(not os.path.exists(path), "%s: %s was left behind", arguments, name)
        with open(path, "wb") as handle:
            handle.write(old)
        link = box.path("link-to-" + name)
        os.symlink(name, link)
        run = box.austin(["-i", "1ms", "-o", link] + box.command("steady.py", seconds=0.4), path=path)
        need(run.code == 0, "%s", run.text())
        need(os.path.islink(link), "the link has become a file")
        need(len(box.stream(run).samples) > 50, "%s: too few samples", name)


def as_nobody(box):
    """The program where an unprivileged user can run it."""
    if os.geteuid() != 0:
        raise Skip("needs root, to be another user")
    os.chmod(box.dir, 0o777)
    program = os.path.join(box.dir, "austin")
    shutil.copy(box.config["austin"][0], program)
    os.chmod(program, 0o755)
    return program


@test("one")
def test_no_permission(box):
    program = as_nobody(box)
    target = box.start("steady.py", seconds=0)
    run = box.spawn(
        [program, "-o", os.path.join(box.dir, "nobody.mojo"), "-p", str(target.pid)],
        user=65534,
        group=65534,
        extra_groups=[],
    )
    code = run.wait(20)
    need(code == 2, "exit status %d instead of 2: %s", code, run.errors())
    for needle in ("Insufficient permissions", str(target.pid)):
        need(needle in run.errors(), "%r is not in %s", needle, run.errors())
    need(
        "sudo" in run.errors() or "setcap" in run.errors() or "CAP_SYS_PTRACE" in run.errors(),
        "no command that gives the right: %s",
        run.errors(),
    )
    need(target.alive(), "the target ended")


@test()
def test_unprivileged_launch(box):
    """A plain user profiles a program of their own."""
    program = as_nobody(box)
    if not os.path.exists("/usr/bin/python3"):
        raise Skip("there is no /usr/bin/python3 that every user can run")
    script = os.path.join(box.dir, "work.py")
    with open(script, "w") as handle:
        handle.write("import time\nend = time.monotonic() + 0.5\nwhile time.monotonic() < end:\n    pass\n")
    path = os.path.join(box.dir, "own.mojo")
    run = box.spawn(
        [program, "-i", "1ms", "-o", path, "/usr/bin/python3", script],
        user=65534,
        group=65534,
        extra_groups=[],
        cwd=box.dir,
    )
    code = run.wait(20)
    with open(
        "/proc/sys/kernel/yama/ptrace_scope" if os.path.exists("/proc/sys/kernel/yama/ptrace_scope") else os.devnull
    ) as handle:
        scope = int(handle.read() or 0)
    if scope > 1:
        need(code == 2, "ptrace_scope %d, exit status %d: %s", scope, code, run.errors())
        return
    need(code == 0, "exit status %d: %s", code, run.errors())
    need(len(box.stream(path).samples) > 50, "too few samples")


@test()
def test_unreadable_wrapper(box):
    """What we launched may not be readable for a while; that is not yet a missing right."""
    program = as_nobody(box)
    if not os.path.exists("/usr/bin/python3"):
        raise Skip("there is no /usr/bin/python3 that every user can run")
    script = os.path.join(box.dir, "work.py")
    with open(script, "w") as handle:
        handle.write("import time\nend = time.monotonic() + 0.5\nwhile time.monotonic() < end:\n    pass\n")
    wrapper = os.path.join(box.dir, "wrapper")
    shutil.copy(os.path.realpath("/bin/sh"), wrapper)
    os.chmod(wrapper, 0o711)  # to be run, not to be read: such a process is not dumpable (proc(5), ptrace(2))
    path = os.path.join(box.dir, "own.mojo")
    user = dict(user=65534, group=65534, extra_groups=[], cwd=box.dir)
    rest = 'sleep 0.4; exec /usr/bin/python3 "$1"'
    # at once, and after a program that could be read
    for command in ([wrapper], ["/bin/sh", "-c", 'sleep 0.2; exec "$@"', "sh", wrapper]):
        run = box.spawn([program, "-i", "1ms", "-t", "5s", "-o", path] + command + ["-c", rest, "sh", script], **user)
        code = run.wait(20)
        need(code == 0, "exit status %d: %s", code, run.errors())
        need(len(box.stream(path).samples) > 50, "too few samples")
        os.unlink(path)
    began = time.monotonic()
    run = box.spawn([program, "-t", "500ms", "-o", path, wrapper, "-c", "sleep 20; true"], **user)
    code = run.wait(20)
    need(code == 2 and "Insufficient permissions" in run.errors(), "exit status %d: %s", code, run.errors())
    need(0.4 < time.monotonic() - began < 10, "it took %.1f s", time.monotonic() - began)


@test("one")
def test_closed_descriptors(box):
    """Started without standard descriptors: no file of ours takes their place, and the program has none either."""
    script = os.path.join(box.dir, "open.py")
    with open(script, "w") as handle:
        handle.write(
            "import os, sys, time\nnames = [n for n in '012' if os.path.exists('/proc/self/fd/' + n)]\n"
            "end = time.monotonic() + 0.4\nwhile time.monotonic() < end:\n    pass\n"
            "open(sys.argv[1], 'w').write(' '.join(names))\n"
        )
    shown_by = os.path.join(box.dir, "shown")
    for closed in ("0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"):
        path = box.path()
        process = box.spawn(
            ["sh", "-c", 'exec "$@" ' + closed, "sh", *box.config["austin"], "-i", "1ms", "-o", path]
            + box.interp.argv
            + [box.interp.inside(script), box.interp.inside(shown_by)]
        )
        code = process.wait(20)
        need(code == 0, "%s: exit status %d: %s", closed, code, process.errors())
        need(len(box.stream(path).samples) > 50, "%s: too few samples", closed)
        with open(shown_by) as handle:
            seen = handle.read().split()
        wanted = [number for number in "012" if number + "<" not in closed and number + ">" not in closed]
        need(seen == wanted, "%s: the program has %s", closed, seen)
    # the samples themselves have nowhere to go
    process = box.spawn(
        ["sh", "-c", 'exec "$@" 1>&-', "sh", *box.config["austin"], "-i", "1ms"] + box.command("steady.py", seconds=5)
    )
    code = process.wait(20)
    need(code == 5 and "standard output" in process.errors(), "exit status %d: %s", code, process.errors())
    need("-o profile.mojo" in process.errors(), "no remedy: %s", process.errors())


@test()
def test_text_that_cannot_be_shown(box):
    """Help and version have nowhere to go: that is said, and what to do."""
    for option in ("--help", "--usage", "-V"):
        for where in ("1>&-", "1>/dev/full"):
            process = box.spawn(["sh", "-c", 'exec "$@" ' + where, "sh", *box.config["austin"], option])
            code = process.wait(20)
            lines = process.errors().strip().splitlines()
            need(code == 5 and "standard output" in process.errors(), "%s %s: %d, %s", option, where, code, lines)
            need(len(lines) == 2, "no remedy: %s", lines)


@test("one")
def test_pipe_mode(box):
    path = box.path()
    plain = box.austin(["-i", "1ms", "-o", path] + box.command("steady.py", seconds=0.5), path=path)
    quiet_path = box.path()
    quiet = box.austin(["-P", "-i", "1ms", "-o", quiet_path] + box.command("steady.py", seconds=0.5), path=quiet_path)
    need(plain.code == 0 and quiet.code == 0, "%s / %s", plain.text(), quiet.text())
    need(quiet.errors == "", "words in pipe mode: %s", quiet.errors)
    need(box.interp.text.rstrip("t") in plain.errors, "the version of Python is not on stderr: %s", plain.errors)
    # what a run counts, it names, and nothing else: a stack that was torn while the program started is no difference
    counts = ("torn", "truncated", "unreadable", "stalls")
    for run in (plain, quiet):
        data = dict(box.stream(run).metadata)
        parts = {key: int(data[key]) for key in counts if key in data}
        errors = int(data["errors"].split("/")[0])
        need(errors == parts.get("torn", 0) + parts.get("truncated", 0), "errors are %s, parts %s", errors, parts)
        need(all(parts.values()), "a count of nothing is written: %s", parts)
    keys = [[key for key, _ in box.stream(run).metadata if key not in counts] for run in (plain, quiet)]
    need(keys[0] == keys[1], "metadata differ: %s", keys)
    need(
        keys[0] == ["austin", "interval", "mode", "python", "duration", "sampling", "saturation", "errors"],
        "metadata are %s",
        keys[0],
    )


@test("one")
def test_pipe_mode_passes_every_sample_on_at_once(box):
    process = box.begin(["-P", "-i", "20ms"] + box.command("steady.py", seconds=2.0))
    out = process.popen.stdout.fileno()
    end, arrivals = time.monotonic() + 1.6, []
    data = b""
    while time.monotonic() < end:
        if select.select([out], [], [], 0.1)[0]:
            piece = os.read(out, 65536)
            if not piece:
                break
            data += piece
            arrivals.append(time.monotonic())
    gaps = [b - a for a, b in zip(arrivals, arrivals[1:])]
    need(
        len(arrivals) > 30 and sorted(gaps)[len(gaps) // 2] < 0.06,
        "%d pieces arrived, median gap %s",
        len(arrivals),
        sorted(gaps)[len(gaps) // 2] if gaps else None,
    )
    stream = mojo.read(data, unfinished=True)
    need(stream.sample_count >= len(arrivals) - 5, "%d samples in %d pieces", stream.sample_count, len(arrivals))
    process.kill(signal.SIGINT)
    process.wait(20)


@test("one")
def test_samples_to_stdout(box):
    """The program's own output goes nowhere then; its error output is left alone."""
    run = box.begin(["-i", "1ms"] + box.command("steady.py", seconds=0.4))
    code = run.wait(30)
    need(code == 0, "exit status %d: %s", code, run.errors())
    # with their braces: functions of the target that are called ready and done may well be sampled
    need(b"ready {" not in run.out and b"done {" not in run.out, "the program's output is in the stream")
    stream = mojo.read(run.out)
    need(stream.sample_count > 50, "%d samples", stream.sample_count)


@test("one")
def test_output_of_the_program(box):
    """With -o its output is its own, and so is its input; it has open descriptors 0, 1 and 2."""
    script = os.path.join(box.dir, "echo.py")
    with open(script, "w") as handle:
        handle.write(
            "import os, sys, time\ntext = sys.stdin.read()\ntime.sleep(0.3)\nsys.stdout.write('out ' + text)\n"
            "sys.stderr.write('err ' + text)\nfd = os.open('/dev/null', os.O_RDONLY)\nprint('descriptor', fd)\n"
        )
    process = box.begin(["-i", "1ms", "-o", box.path()] + box.interp.argv + [box.interp.inside(script)])
    process.popen.stdin.write(b"hello")
    process.popen.stdin.close()
    code = process.wait(20)
    need(
        code == 0 and "out hello" in process.text() and "err hello" in process.errors(),
        "%d, %s, %s",
        code,
        process.text(),
        process.errors(),
    )
    need("descriptor 3" in process.text(), "the program inherits descriptors: %s", process.text())


@test("one")
def test_limits_are_not_inherited(box):
    """Open files, timer slack, signal mask: the program gets what we were given."""
    script = os.path.join(box.dir, "limits.py")
    with open(script, "w") as handle:
        handle.write(
            "import resource, signal, time\n"
            "print(resource.getrlimit(resource.RLIMIT_NOFILE), open('/proc/self/timerslack_ns').read().strip(),"
            " sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),"
            " [signal.getsignal(n) == signal.SIG_IGN for n in (1, 2, 3, 13, 15)])\ntime.sleep(0.3)\n"
        )
    if box.interp.root:
        raise Skip("a root without /proc")
    command = box.interp.argv + [script]

    def limit():
        import resource

        resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))

    alone = box.spawn(command, preexec_fn=limit)
    alone.wait(20)
    under = box.begin(["-o", box.path()] + command, preexec_fn=limit)
    under.wait(20)
    need(alone.text() == under.text(), "alone %s, profiled %s", alone.text(), under.text())


@test("one")
def test_exit_status_of_the_program_is_not_ours(box):
    box.launch("steady.py", "-i", "1ms", seconds=0.4, code=0, timeout=20)
    path = box.path()
    run = box.austin(["-o", path, "-i", "1ms"] + box.command("steady.py", seconds=0.4) + ["code=7"], path=path)
    need(run.code == 0, "the program exited with 7, we with %s", run.text())


@test("one")
def test_exposure(box):
    target = box.start("steady.py", seconds=0, busy=0)
    for words in (["-x", "1"], ["--exposure=1s"]):
        path = box.path()
        run = box.austin(["-i", "1ms", "-o", path] + words + ["-p", target.pid], path=path)
        need(run.code == 254, "%s", run.text())
        duration = int(dict(box.stream(run).metadata)["duration"])
        need(0.95e6 <= duration <= 1.1e6, "-x 1 took %d us", duration)
    need(target.alive(), "the target was ended")
    # a program that we launched is interrupted
    path = box.path()
    begun = time.monotonic()
    run = box.austin(["-x", "1", "-o", path] + box.command("steady.py", seconds=20), path=path)
    need(run.code == 254 and time.monotonic() - begun < 6, "%.1f s, %s", time.monotonic() - begun, run.text())
    need("KeyboardInterrupt" in run.errors, "the program was not interrupted: %s", run.errors)


@test("one")
def test_timeout(box):
    """-t is how long an interpreter may take to appear."""
    command = box.interp.argv + [box.interp.inside(os.path.join(box.targets, "steady.py")), "seconds=0.5"]
    late = ["sh", "-c", 'sleep 1; exec "$@"', "sh"] + command
    run = box.austin(["-t", "200ms", "-o", box.path()] + late)
    need(run.code == 10, "%s", run.text())
    path = box.path()
    run = box.austin(["-t", "5s", "-o", path] + late, path=path)
    need(run.code == 0 and box.stream(run).samples, "%s", run.text())


@test("one")
def test_end_statistics(box):
    run = box.launch("steady.py", "-i", "1ms", seconds=0.5)
    for needle in ("duration", "rate", "error"):
        need(needle in run.errors.lower(), "%r is not in the statistics: %s", needle, run.errors)


@test("one")
def test_compression(box):
    for words, name in ((["--compress"], "a.mojo"), ([], "b.mojo.zst"), (["--compress"], "c.zst")):
        path = box.path(name)
        run = box.austin(["-i", "100us", "-o", path] + words + box.command("steady.py", seconds=0.5), path=path)
        need(run.code == 0, "%s", run.text())
        with open(path, "rb") as handle:
            need(handle.read(4) == b"\x28\xb5\x2f\xfd", "%s %s is not zstd", words, name)
        need(len(box.stream(run).samples) > 300, "too few samples in %s", name)


# ---- terminals -----------------------------------------------------------------------------------------------------


class Terminal:
    """A pseudo-terminal with the profiler in a session of its own, like below a shell."""

    def __init__(self, box, arguments, stdout=True):
        self.box = box
        self.seen = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                os.chdir(box.dir)
                os.execve(box.config["austin"][0], ["austin"] + [str(part) for part in arguments], box.env())
            finally:
                os._exit(127)
        self.status = None

    def read_until(self, text, timeout=20):
        deadline = time.monotonic() + timeout
        while text.encode() not in self.seen:
            if not select.select([self.fd], [], [], max(0, deadline - time.monotonic()))[0]:
                raise Failure("%r did not come; so far: %s" % (text, shown(self.seen.decode(errors="replace"))))
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                data = b""
            if not data:
                raise Failure(
                    "%r did not come before the end; so far: %s" % (text, shown(self.seen.decode(errors="replace")))
                )
            self.seen += data
        self.seen = self.seen.partition(text.encode())[2]

    def type(self, text):
        os.write(self.fd, text.encode())

    def wait(self, timeout=20):
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
                return self.status
            if select.select([self.fd], [], [], 0.02)[0]:
                try:
                    self.seen += os.read(self.fd, 65536)
                except OSError:
                    time.sleep(0.02)
        raise Failure("no end in time; it said %s" % shown(self.seen.decode(errors="replace")))


def script(box, text):
    path = os.path.join(box.dir, "script.py")
    with open(path, "w") as handle:
        handle.write(text)
    return box.interp.argv + [box.interp.inside(path)]


@test("one")
def test_prompt_before_samples_go_to_a_terminal(box):
    terminal = Terminal(box, box.command("steady.py", seconds=0.3))
    terminal.read_until("?")
    terminal.type("n\n")
    need(terminal.wait() == 0, "the answer no: exit status %s", terminal.status)
    terminal = Terminal(box, box.command("steady.py", seconds=0.3))
    terminal.read_until("?")
    terminal.type("y\n")
    terminal.read_until("MOJ")
    need(terminal.wait() == 0, "the answer yes: exit status %s", terminal.status)


@test("one")
def test_no_prompt_without_a_terminal_to_answer(box):
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        box.config["austin"] + box.command("steady.py", seconds=0.3),
        env=box.env(),
        stdin=subprocess.DEVNULL,
        stdout=follower,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    os.close(follower)
    try:
        errors = process.communicate(timeout=20)[1].decode(errors="replace")
    finally:
        os.close(leader)
    need(process.returncode not in (0, None) and errors.strip(), "exit status %s, %s", process.returncode, errors)


@test("one")
def test_input_at_a_terminal(box):
    """The program is in the foreground: input() and pdb work."""
    terminal = Terminal(
        box,
        ["-o", box.path(), "-i", "1ms"]
        + script(box, "x = input('name? ')\nprint('hello', x)\nbreakpoint()\ny = 5\nprint('after', y)\n"),
    )
    terminal.read_until("name? ")
    terminal.type("Ann\n")
    terminal.read_until("hello Ann")
    terminal.read_until("(Pdb)")
    terminal.type("n\n")
    terminal.read_until("(Pdb)")
    terminal.type("c\n")
    terminal.read_until("after 5")
    need(terminal.wait() == 0, "exit status %s: %s", terminal.status, terminal.seen)


@test("one")
def test_interrupt_key(box):
    """Ctrl-C reaches the program alone, once: if it dies of it we end with 254, if it goes on so do we."""
    path = box.path()
    terminal = Terminal(
        box, ["-o", path, "-i", "1ms"] + script(box, "import time\nprint('up', flush=True)\ntime.sleep(30)\n")
    )
    terminal.read_until("up")
    time.sleep(0.3)
    terminal.type("\x03")
    need(terminal.wait() == 254, "exit status %s: %s", terminal.status, terminal.seen)
    need(terminal.seen.count(b"KeyboardInterrupt") == 1, "not exactly one interrupt: %s", terminal.seen)
    box.stream(path)
    terminal = Terminal(
        box,
        ["-o", path, "-i", "1ms"]
        + script(
            box,
            "import signal, time\ncount = 0\ndef caught(*_):\n    global count\n    count += 1\n"
            "signal.signal(signal.SIGINT, caught)\nprint('up', flush=True)\nend = time.time() + 1.2\n"
            "while time.time() < end:\n    time.sleep(0.05)\nprint('caught', count, flush=True)\n",
        ),
    )
    terminal.read_until("up")
    time.sleep(0.3)
    terminal.type("\x03")
    terminal.read_until("caught 1")
    need(terminal.wait() == 0, "exit status %s: %s", terminal.status, terminal.seen)
    stream = box.stream(path)
    need(int(dict(stream.metadata)["duration"]) > 1_000_000, "sampling ended with the key")


@test("one")
def test_stop_key(box):
    """Ctrl-Z stops program and profiler like one job; `fg` brings both back."""
    # a shell's part is played by a small program, since the session's leader must not be the stopped one
    box.interp = catalogue.find("debian")
    shell = os.path.join(box.dir, "shell.py")
    with open(shell, "w") as handle:
        handle.write(
            "import os, signal, sys\n"
            "signal.signal(signal.SIGTTOU, signal.SIG_IGN)\n"
            "pid = os.fork()\n"
            "if pid == 0:\n"
            "    os.setpgid(0, 0)\n"
            "    os.tcsetpgrp(0, os.getpid())\n"
            "    signal.signal(signal.SIGTTOU, signal.SIG_DFL)\n"
            "    os.execv(sys.argv[1], sys.argv[1:])\n"
            "_, status = os.waitpid(pid, os.WUNTRACED)\n"
            "print('STOPPED', os.WIFSTOPPED(status), flush=True)\n"
            "os.tcsetpgrp(0, os.getpgrp())\n"
            "sys.stdin.readline()\n"
            "os.tcsetpgrp(0, pid)\n"
            "os.killpg(pid, signal.SIGCONT)\n"
            "_, status = os.waitpid(pid, 0)\n"
            "os.tcsetpgrp(0, os.getpgrp())\n"
            "print('ENDED', os.waitstatus_to_exitcode(status), flush=True)\n"
        )
    path = box.path()
    command = [*box.config["austin"], "-o", path, "-i", "1ms"] + script(
        box, "import time\nprint('up', flush=True)\ntime.sleep(0.8)\nprint('got', input(), flush=True)\n"
    )
    pid, fd = pty.fork()
    if pid == 0:
        try:
            os.execve(box.interp.exe, [box.interp.exe, shell] + command, box.env())
        finally:
            os._exit(127)
    terminal = Terminal.__new__(Terminal)
    terminal.box, terminal.pid, terminal.fd, terminal.seen, terminal.status = box, pid, fd, b"", None
    terminal.read_until("up")
    time.sleep(0.2)
    terminal.type("\x1a")
    terminal.read_until("STOPPED True")
    time.sleep(0.3)
    terminal.type("fg\n")
    time.sleep(1.0)
    terminal.type("line\n")
    terminal.read_until("got line")
    terminal.read_until("ENDED 0")
    terminal.wait()
    box.stream(path)
