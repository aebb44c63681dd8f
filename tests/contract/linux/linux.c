/* SPDX-License-Identifier: Apache-2.0 */
/* What the Linux port promises beyond the contract: odd processes, replaced files, missing rights, missing descriptors.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "objfile/objfile.h"
#include "platform/linux/linux.h"
#include "platform/linux/maps.h"
#include "platform/platform.h"
#include "tests/contract/cases.h"
#include "tests/contract/cases_list.h"
#include "tests/contract/linux/suites.h"

static au_proc *attach(pid_t pid)
{
    au_proc *p = NULL;
    au_error *error = au_platform_sys()->ops->open(au_platform_sys(), pid, AU_WANT_READ, &p);
    ck_assert_msg(error == NULL, "%s: %s", error ? error->message : "", error && error->cause ? error->cause : "");
    return p;
}

static pid_t run(const char *const *argv)
{
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execv(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    usleep(60000);
    return pid;
}

static void reap(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* ---- maps ---------------------------------------------------------------------------------------------------------
 */

START_TEST(maps_lines)
{
    static const struct {
        const char *text;
        int good;
        au__maps_line is;
    } cases[] = {
        {"00400000-00452000 r-xp 00001000 08:02 173521      /usr/bin/x",
         1,
         {0x400000, 0x452000, 0x1000, 173521, AU_PERM_READ | AU_PERM_EXEC, 8, 2, 0, "/usr/bin/x"}},
        {"7f0000000000-7f0000001000 rw-s 00000000 00:05 18446744073709551615 /a b (deleted) (deleted)",
         1,
         {0x7f0000000000, 0x7f0000001000, 0, UINT64_MAX, AU_PERM_READ | AU_PERM_WRITE | AU_PERM_SHARED, 0, 5, 1,
          "/a b (deleted)"}},
        {"1000-2000 ---p 00000000 00:00 0 ", 1, {0x1000, 0x2000, 0, 0, 0, 0, 0, 0, NULL}},
        {"1000-2000 r--p 00000000 fd:1f 7 /odd\\012name",
         1,
         {0x1000, 0x2000, 0, 7, AU_PERM_READ, 0xfd, 0x1f, 0, "/odd\nname"}},
        {"1000-2000 r--p 00000000 00:00 0 [vdso]", 1, {0x1000, 0x2000, 0, 0, AU_PERM_READ, 0, 0, 0, "[vdso]"}},
        {"2000-1000 r--p 00000000 00:00 0", 0, {0}},
        {"1000-1000 r--p 00000000 00:00 0", 0, {0}},
        {"10000000000000000-20000000000000000 r--p 00000000 00:00 0", 0, {0}},
        {"1000-2000 r--p", 0, {0}},
        {"1000-2000 r--p 0 0:0 99999999999999999999", 0, {0}},
        {"", 0, {0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[256];
        size_t len = strlen(cases[i].text);
        memcpy(line, cases[i].text, len);
        au__maps_line got;
        ck_assert_msg((au__maps_parse_line(line, len, &got) == 0) == cases[i].good, "%s", cases[i].text);
        if (!cases[i].good) {
            continue;
        }
        const au__maps_line *is = &cases[i].is;
        ck_assert_uint_eq(got.start, is->start);
        ck_assert_uint_eq(got.end, is->end);
        ck_assert_uint_eq(got.offset, is->offset);
        ck_assert_uint_eq(got.inode, is->inode);
        ck_assert_uint_eq(got.perms, is->perms);
        ck_assert_uint_eq(got.dev_major, is->dev_major);
        ck_assert_uint_eq(got.dev_minor, is->dev_minor);
        ck_assert_int_eq(got.deleted, is->deleted);
        ck_assert_int_eq(got.path != NULL, is->path != NULL);
        if (is->path) {
            ck_assert_str_eq(got.path, is->path);
        }
        ck_assert_int_eq(au__maps_file_id(&got) != 0, is->inode != 0);
    }
}
END_TEST

enum { MANY = 3000 };
#define MANY_AT 0x600000000000u

static int count_region(void *baton, const au_region *region)
{
    if (region->start >= MANY_AT && region->start < MANY_AT + (uint64_t)MANY * 4096) {
        ++*(int *)baton;
    }
    return 0;
}

/** More lines than any buffer holds. */
START_TEST(many_regions)
{
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int i = 0; i < MANY; i++) { /* every second page with other rights, so that they do not merge */
            void *at = (void *)(uintptr_t)(MANY_AT + (uint64_t)i * 4096);
            int rights = i & 1 ? PROT_READ : PROT_READ | PROT_WRITE;
            if (mmap(at, 4096, rights, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != at) {
                _exit(1);
            }
        }
        raise(SIGSTOP);
        _exit(0);
    }
    waitpid(pid, NULL, WUNTRACED);
    au_proc *p = attach(pid);
    int seen = 0;
    ck_assert_ptr_null(p->ops->regions(p, count_region, &seen));
    ck_assert_int_eq(seen, MANY);
    p->ops->close(p);
    reap(pid);
}
END_TEST

/* ---- the other way of reading -------------------------------------------------------------------------------------
 */

/** Where process_vm_readv is missing or refused, /proc/PID/mem serves: the same cases. (Pages without rights excepted:
 *  mem does not heed them, so case_read and case_read_many_faults are not among them.) */
static au_error *open_without_call(au_sys *sys, au_pid pid, unsigned want, au_proc **out)
{
    au_error *error = au__linux_proc_open(sys, pid, want, out);
    if (!error) {
        linux_of(*out)->no_vm_readv = 1;
    }
    return error;
}

START_TEST(read_through_mem)
{
    static const contract_fn cases[] = {case_open,        case_status_exec,     case_status_end,          case_identity,
                                        case_read_many,   case_read_many_order, case_read_many_thousands, case_modules,
                                        case_thread_id_of};
    static au_proc_ops table;
    table = au__linux_ops;
    table.open = open_without_call;
    static linux_sys sys;
    sys.sys.ops = &table;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        world w;
        ck_assert_int_eq(world_live(&w), 0);
        w.sys = &sys.sys;
        const char *text = cases[i](&w);
        shut();
        w.destroy(&w);
        if (text && strncmp(text, "SKIP: ", 6) != 0) {
            ck_abort_msg("%s", text);
        }
    }
    world w;
    ck_assert_int_eq(world_live(&w), 0);
    w.sys = &sys.sys;
    au_proc *p = NULL;
    ck_assert_ptr_null(sys.sys.ops->open(&sys.sys, w.pid, AU_WANT_READ, &p));
    uint8_t buf[128];
    au_piece pieces[3] = {{w.data, buf, 8, 99}, {w.hole - 4, buf, 8, 99}, {w.data + 9, buf, 8, 99}};
    ck_assert_uint_eq(p->ops->read_many(p, pieces, 3), 2);
    ck_assert_uint_eq(pieces[1].outcome, AU_FAULT);
    p->ops->close(p);
    w.destroy(&w);
}
END_TEST

/* ---- odd processes ------------------------------------------------------------------------------------------------
 */

static void refused(pid_t pid, au_errcode code, const char *cause)
{
    au_proc *p = NULL;
    au_error *error = au_platform_sys()->ops->open(au_platform_sys(), pid, AU_WANT_READ, &p);
    ck_assert_ptr_nonnull(error);
    char message[64];
    snprintf(message, sizeof message, "Cannot attach to process %d", (int)pid);
    ck_assert_str_eq(error->message, message);
    ck_assert_int_eq(error->code, code);
    ck_assert_msg(error->cause && strstr(error->cause, cause), "cause: %s", error->cause ? error->cause : "none");
    au_error_clear(error);
}

static void *wait_in_thread(void *out)
{
    *(volatile pid_t *)out = (pid_t)syscall(SYS_gettid);
    for (;;) {
        pause();
    }
    return NULL;
}

START_TEST(odd_processes)
{
    refused(2147483000, AU_ERR_OS, "no process");
    char comm[64] = "";
    if (au__linux_slurp_root("2/comm", comm, sizeof comm) > 0 && strncmp(comm, "kthreadd", 8) == 0) {
        refused(2, AU_ERR_BINARY, "kernel thread");
    } else {
        printf("linux: kernel thread NOT RUN: there is none to be seen here\n");
    }
    pid_t pid = fork();
    if (pid == 0) {
        _exit(0);
    }
    siginfo_t info;
    waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
    refused(pid, AU_ERR_OS, "ended"); /* nobody has waited for it yet */
    waitpid(pid, NULL, 0);

    pid_t *tid = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pthread_t thread;
        pthread_create(&thread, NULL, wait_in_thread, tid);
        for (;;) {
            pause();
        }
    }
    while (!*(volatile pid_t *)tid) {
        usleep(1000);
    }
    char cause[64];
    snprintf(cause, sizeof cause, "thread of process %d", (int)pid);
    refused(*tid, AU_ERR_OS, cause);
    reap(pid);
}
END_TEST

typedef struct main_look {
    int found;
    au_module facts;
    char path[256];
} main_look;

static int look_for_main(void *baton, const au_module *module)
{
    main_look *look = baton;
    if (module->is_main) {
        look->found++;
        look->facts = *module;
        snprintf(look->path, sizeof look->path, "%s", module->path);
    }
    return 0;
}

static main_look main_of(au_proc *p)
{
    main_look look = {0};
    au_error *error = p->ops->modules(p, look_for_main, &look);
    ck_assert_msg(error == NULL, "%s", error ? error->message : "");
    ck_assert_int_eq(look.found, 1);
    return look;
}

typedef struct leaderless {
    volatile pid_t tids[2];
    volatile int leader_shall_end, first_shall_end;
    uint8_t data[64];
} leaderless;

static leaderless *shared;

static void *stay(void *index)
{
    size_t i = (size_t)(uintptr_t)index;
    shared->tids[i] = (pid_t)syscall(SYS_gettid);
    while (i != 0 || !shared->first_shall_end) {
        usleep(1000);
    }
    syscall(SYS_exit, 0);
    return NULL;
}

static void leaderless_is_read(au_proc *p, uint32_t generation)
{
    uint8_t buf[64], again[64];
    for (int i = 0; i < 20; i++) {
        memset(buf, 0, sizeof buf);
        memset(again, 0, sizeof again);
        ck_assert_int_eq(p->ops->read(p, (au_addr)(uintptr_t)shared->data, buf, sizeof buf), AU_OK);
        ck_assert_int_eq(memcmp(buf, shared->data, sizeof buf), 0);
        au_piece pieces[2] = {{(au_addr)(uintptr_t)shared->data, again, 64, 9}, {16, buf, 8, 9}};
        ck_assert_uint_eq(p->ops->read_many(p, pieces, 2), 1);
        ck_assert_int_eq(memcmp(again, shared->data, sizeof again), 0);
        ck_assert_uint_eq(pieces[1].outcome, AU_FAULT);
        au_proc_status status;
        ck_assert_int_eq(p->ops->status(p, &status), AU_OK);
        ck_assert_int_eq(status.state, AU_RUNNING);
        ck_assert_uint_eq(status.generation, generation);
        ck_assert_uint_eq(status.pointer_bytes, sizeof(void *));
        usleep(1000); /* longer than `status` trusts its last look, in all */
    }
    au_usage usage;
    ck_assert_int_eq(p->ops->usage(p, &usage), AU_OK);
    ck_assert_uint_gt(usage.resident_bytes, 0);
    main_look look = main_of(p);
    char exe[64];
    ssize_t length = readlink("/proc/self/exe", exe, sizeof exe);
    ck_assert_int_eq(strncmp(look.path, exe, (size_t)(length > 0 ? length : 0)), 0);
    uint8_t head[4];
    size_t got;
    au_module_source source;
    ck_assert_ptr_null(p->ops->module_read(p, look.facts.id, 0, head, sizeof head, &got, &source));
    ck_assert_int_eq(memcmp(head, "\177ELF", 4), 0);
}

static char letter_of(pid_t pid, pid_t tid)
{
    char name[64], text[512] = "";
    snprintf(name, sizeof name, "%d/task/%d/stat", (int)pid, (int)tid);
    linux_stat stat;
    ssize_t len = au__linux_slurp_root(name, text, sizeof text);
    return len > 0 && au__linux_parse_stat(text, (size_t)len, &stat) == 0 ? stat.state : 0;
}

/** The first thread ends and others run: at open, while it is open, and when the one that stood for it ends too. */
START_TEST(first_thread_has_ended)
{
    for (int round = 0; round < 3; round++) { /* 1: opened before; 2: a kernel without pidfds of threads */
        shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        ck_assert_ptr_ne(shared, MAP_FAILED);
        for (size_t i = 0; i < sizeof shared->data; i++) {
            shared->data[i] = (uint8_t)(i * 7 + 1);
        }
        pid_t pid = fork();
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL); /* of our ending first thread nobody hears but we */
            pthread_t threads[2];
            for (size_t i = 0; i < 2; i++) {
                pthread_create(&threads[i], NULL, stay, (void *)(uintptr_t)i);
            }
            while (!shared->leader_shall_end) {
                usleep(1000);
            }
            syscall(SYS_exit, 0);
        }
        while (!shared->tids[0] || !shared->tids[1]) {
            usleep(1000);
        }
        au_proc *p = round == 1 ? attach(pid) : NULL;
        if (p) {
            leaderless_is_read(p, 0);
        }
        shared->leader_shall_end = 1;
        while (letter_of(pid, pid) != 'Z') {
            usleep(1000);
        }
        if (!p) {
            p = attach(pid);
        }
        if (round == 2) {
            linux_of(p)->reader = -1;
        }
        leaderless_is_read(p, 0);
        au_thread threads[4];
        size_t n = 0;
        ck_assert_ptr_null(p->ops->threads(p, threads, 4, &n));
        ck_assert_uint_eq(n, 3);
        au_thread_state states[2] = {{.tid = pid, .wanted = 3}, {.tid = shared->tids[0], .wanted = 3}};
        ck_assert_uint_eq(p->ops->thread_states(p, states, 2), 1);
        ck_assert_int_eq(states[0].run, AU_RUN_GONE);
        ck_assert_uint_eq(states[1].outcome, AU_OK);
        shared->first_shall_end = 1;
        while (letter_of(pid, shared->tids[0]) != 0) {
            usleep(1000);
        }
        leaderless_is_read(p, 0);
        kill(pid, SIGKILL);
        siginfo_t info;
        ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
        au_proc_status status;
        ck_assert_int_eq(p->ops->status(p, &status), AU_OK);
        ck_assert_int_eq(status.state, AU_EXITED);
        uint8_t byte;
        ck_assert_int_eq(p->ops->read(p, (au_addr)(uintptr_t)shared->data, &byte, 1), AU_GONE);
        waitpid(pid, NULL, 0);
        p->ops->close(p);
        munmap(shared, sizeof *shared);
    }
}
END_TEST

/** A program of 32 bits: made by hand, so that no compiler for it is needed. It calls pause for ever. */
START_TEST(program_of_32_bits)
{
    static const uint8_t code[] = {0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7};
    uint8_t file[0x80 + sizeof code] = {0x7f, 'E', 'L', 'F', 1, 1, 1};
    uint32_t entry = 0x08048080, base = 0x08048000, size = sizeof file, value;
    file[16] = 2;
    file[18] = 3;
    file[20] = 1;
    memcpy(file + 24, &entry, 4);
    file[28] = 52;
    file[40] = 52;
    file[42] = 32;
    file[44] = 1;
    file[52] = 1;
    memcpy(file + 60, &base, 4);
    memcpy(file + 64, &base, 4);
    memcpy(file + 68, &size, 4);
    memcpy(file + 72, &size, 4);
    value = 5;
    memcpy(file + 76, &value, 4);
    value = 4096;
    memcpy(file + 80, &value, 4);
    memcpy(file + 0x80, code, sizeof code);
    char path[] = "/tmp/au-elf32-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_eq(write(fd, file, sizeof file), sizeof file);
    fchmod(fd, 0700);
    close(fd);
    const char *const argv[] = {path, NULL};
    pid_t pid = run(argv);
    int status;
    if (waitpid(pid, &status, WNOHANG) == pid) {
        printf("linux: program_of_32_bits NOT RUN: this kernel runs none\n");
    } else {
        au_proc *p = attach(pid);
        au_proc_status facts;
        ck_assert_int_eq(p->ops->status(p, &facts), AU_OK);
        ck_assert_uint_eq(facts.pointer_bytes, 4);
        uint8_t head[4];
        ck_assert_int_eq(p->ops->read(p, base, head, 4), AU_OK);
        ck_assert_int_eq(memcmp(head, "\177ELF", 4), 0);
        p->ops->close(p);
        reap(pid);
    }
    unlink(path);
}
END_TEST

/* ---- modules whose file is elsewhere ------------------------------------------------------------------------------
 */

static void copy_file(const char *from, const char *to)
{
    char command[512];
    snprintf(command, sizeof command, "cp %s %s", from, to);
    ck_assert_int_eq(system(command), 0);
}

/** The file deleted, and another one in its place: the bytes are the ones that run, never the ones that lie there. */
START_TEST(deleted_and_replaced)
{
    char directory[] = "/tmp/au-mod-XXXXXX", path[64], other[64];
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/program", directory);
    snprintf(other, sizeof other, "%s/other", directory);
    for (int replaced = 0; replaced < 2; replaced++) {
        copy_file("/bin/sleep", path);
        const char *const argv[] = {path, "60", NULL};
        pid_t pid = run(argv);
        au_proc *p = attach(pid);
        main_look before = main_of(p);
        ck_assert_int_eq(before.facts.deleted, 0);
        ck_assert_str_eq(before.path, path);
        uint8_t original[4096], bytes[4096];
        size_t got;
        au_module_source source;
        ck_assert_ptr_null(p->ops->module_read(p, before.facts.id, 8192, original, 4096, &got, &source));
        ck_assert_int_eq(source, AU_SOURCE_FILE);
        if (replaced) {
            copy_file("/bin/cat", other);
            ck_assert_int_eq(rename(other, path), 0);
        } else {
            ck_assert_int_eq(unlink(path), 0);
        }
        main_look after = main_of(p);
        ck_assert_int_eq(after.facts.deleted, 1);
        ck_assert_str_eq(after.path, path);
        ck_assert_uint_eq(after.facts.bias, before.facts.bias);
        ck_assert_int_eq(memcmp(after.facts.build_id, before.facts.build_id, 20), 0);
        ck_assert_ptr_null(p->ops->module_read(p, after.facts.id, 8192, bytes, 4096, &got, &source));
        ck_assert_uint_eq(got, 4096);
        ck_assert_int_eq(memcmp(bytes, original, 4096), 0);
        au_error *stale = p->ops->module_read(p, before.facts.id, 0, bytes, 16, &got, &source);
        ck_assert_ptr_nonnull(stale);
        au_error_clear(stale);
        p->ops->close(p);
        reap(pid);
    }
    unlink(path);
    rmdir(directory);
}
END_TEST

/** Run by the loader: /proc/PID/exe is the loader, and yet the program is the executable. */
START_TEST(run_through_the_loader)
{
    const char *loader = "/lib64/ld-linux-x86-64.so.2";
    if (access(loader, X_OK) != 0) {
        printf("linux: run_through_the_loader NOT RUN: no %s\n", loader);
        return;
    }
    const char *const argv[] = {loader, "/bin/sleep", "60", NULL};
    pid_t pid = run(argv);
    au_proc *p = attach(pid);
    main_look look = main_of(p);
    ck_assert_msg(strstr(look.path, "/sleep") != NULL, "the executable is said to be %s", look.path);
    p->ops->close(p);
    reap(pid);
}
END_TEST

/** Another root directory: with chroot the path in maps is from ours. */
START_TEST(chrooted)
{
    if (geteuid() != 0) {
        printf("linux: chrooted NOT RUN: needs root\n");
        return;
    }
    char directory[] = "/tmp/au-root-XXXXXX", command[512];
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(
        command, sizeof command,
        "mkdir -p %s/bin && cp /proc/self/exe %s/bin/x && for f in /bin/sleep $(ldd /bin/sleep | grep -o '/[^ ]*'); do "
        "mkdir -p %s$(dirname $f) && cp -L $f %s$f; done",
        directory, directory, directory, directory);
    ck_assert_int_eq(system(command), 0);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (chroot(directory) == 0 && chdir("/") == 0) {
            execl("/bin/sleep", "sleep", "60", (char *)NULL);
        }
        _exit(127);
    }
    usleep(80000);
    au_proc *p = attach(pid);
    main_look look = main_of(p);
    ck_assert_int_eq(look.facts.deleted, 0);
    uint8_t head[64];
    size_t got;
    au_module_source source;
    ck_assert_ptr_null(p->ops->module_read(p, look.facts.id, 0, head, sizeof head, &got, &source));
    ck_assert_int_eq(source, AU_SOURCE_FILE);
    p->ops->close(p);
    reap(pid);
    snprintf(command, sizeof command, "rm -rf %s", directory);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

/** A PID namespace below ours: its ids are not ours. */
START_TEST(foreign_ids)
{
    if (geteuid() != 0) {
        printf("linux: foreign_ids NOT RUN: needs root\n");
        return;
    }
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    pid_t outer = fork();
    if (outer == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (unshare(CLONE_NEWPID) != 0) {
            _exit(1);
        }
        pid_t inner = fork();
        if (inner == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            static pid_t tid;
            pthread_t threads[2];
            for (int i = 0; i < 2; i++) {
                pthread_create(&threads[i], NULL, wait_in_thread, &tid);
            }
            uint64_t handle = (uint64_t)threads[1];
            usleep(20000);
            ssize_t unused = write(ends[1], &handle, sizeof handle);
            (void)unused;
            for (;;) {
                pause();
            }
        }
        ssize_t unused = write(ends[1], &inner, sizeof inner); /* as we number it here */
        (void)unused;
        waitpid(inner, NULL, 0);
        _exit(0);
    }
    close(ends[1]);
    pid_t inner = 0;
    uint64_t handle = 0;
    if (read(ends[0], &inner, sizeof inner) != sizeof inner || read(ends[0], &handle, sizeof handle) != sizeof handle) {
        printf("linux: foreign_ids NOT RUN: no PID namespace to be had\n");
        waitpid(outer, NULL, 0);
        return;
    }
    close(ends[0]);
    au_proc *p = attach(inner);
    au_thread threads[8];
    size_t n;
    ck_assert_ptr_null(p->ops->threads(p, threads, 8, &n));
    ck_assert_uint_eq(n, 3);
    for (unsigned id = 1; id <= 3; id++) {
        au_tid tid = 0;
        ck_assert_int_eq(p->ops->thread_id_of(p, AU_ID_NAMESPACED, id, &tid), AU_OK);
        int listed = 0;
        for (size_t i = 0; i < n; i++) {
            listed |= threads[i].tid == tid;
        }
        ck_assert_msg(listed, "id %u is said to be %lld", id, (long long)tid);
        if (id == 1) {
            ck_assert_int_eq(tid, inner);
        }
    }
    au_tid tid = 0;
    ck_assert_int_eq(p->ops->thread_id_of(p, AU_ID_NAMESPACED, 4, &tid), AU_NOT_KNOWN);
    ck_assert_int_eq(p->ops->thread_id_of(p, AU_ID_NAMESPACED, (uint64_t)inner, &tid), AU_NOT_KNOWN);
    ck_assert_int_eq(p->ops->thread_id_of(p, AU_ID_PTHREAD, handle, &tid), AU_OK);
    ck_assert_int_ne(tid, inner);
    p->ops->close(p);
    kill(inner, SIGKILL);
    waitpid(outer, NULL, 0);
}
END_TEST

/* ---- descriptors and time -----------------------------------------------------------------------------------------
 */

/** Not one descriptor left: everything still works, slower. */
static int starve(void)
{
    world w;
    if (world_live(&w) != 0) {
        return 1;
    }
    au_proc *p = attach((pid_t)w.pid);
    linux_of(p)->fd_limit = 0;
    while (dup(2) >= 0) {
    }
    au_thread_state states[3] = {
        {.tid = w.spinner, .wanted = 3}, {.tid = w.sleeper, .wanted = 3}, {.tid = w.extra, .wanted = 1}};
    for (int i = 0; i < 3; i++) {
        if (p->ops->thread_states(p, states, 3) != 3 || states[0].run != AU_RUN_RUNNING ||
            states[1].run != AU_RUN_ASLEEP) {
            return 2;
        }
        au_thread threads[8];
        size_t n;
        int seen = 0;
        if (p->ops->threads(p, threads, 8, &n) || n != 4) {
            return 3;
        }
        if (p->ops->regions(p, count_region, &seen)) {
            return 4;
        }
        char name[32];
        au_proc_status status;
        if (p->ops->thread_name(p, w.sleeper, name, sizeof name) != AU_OK || p->ops->status(p, &status) != AU_OK) {
            return 5;
        }
        usleep(11000);
    }
    p->ops->close(p);
    w.destroy(&w);
    return 0;
}

START_TEST(no_descriptors)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit files = {60, 60};
        setrlimit(RLIMIT_NOFILE, &files);
        _exit(starve());
    }
    int status;
    waitpid(pid, &status, 0);
    ck_assert_int_eq(status, 0);
}
END_TEST

static void *end_soon(void *unused)
{
    (void)unused;
    return NULL;
}

/** Kept-open files belong to a thread, not to its number. */
START_TEST(slots_come_and_go)
{
    world w;
    ck_assert_int_eq(world_live(&w), 0);
    au_proc *p = attach((pid_t)w.pid);
    for (int round = 0; round < 300; round++) {
        au_thread_state state = {.tid = round % 3 == 0 ? w.spinner : round % 3 == 1 ? w.sleeper : w.extra, .wanted = 3};
        ck_assert_uint_eq(p->ops->thread_states(p, &state, 1), 1);
        state.wanted = 0;
        ck_assert_uint_eq(p->ops->thread_states(p, &state, 1), 1);
    }
    ck_assert_uint_le(linux_of(p)->n_slots, 1);
    /* A slot that is handed in with another thread's id is not believed. */
    au_thread_state state = {.tid = w.sleeper, .wanted = 3};
    ck_assert_uint_eq(p->ops->thread_states(p, &state, 1), 1);
    state.tid = w.spinner;
    ck_assert_uint_eq(p->ops->thread_states(p, &state, 1), 1);
    ck_assert_int_eq(state.run, AU_RUN_RUNNING);
    p->ops->close(p);
    w.destroy(&w);
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, end_soon, NULL), 0);
    pthread_join(thread, NULL);
}
END_TEST

/* ---- rights -------------------------------------------------------------------------------------------------------
 */

static void write_file(const char *root, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static void status_file(const char *root, const char *who, int uid, const char *permitted, const char *effective)
{
    char name[64], text[256];
    snprintf(name, sizeof name, "%s/status", who);
    snprintf(text, sizeof text, "Name:\tx\nTgid:\t1\nUid:\t%d\t%d\t%d\t%d\nCapPrm:\t%s\nCapEff:\t%s\n", uid, uid, uid,
             uid, permitted, effective);
    write_file(root, name, text);
}

static au_explanation explained(void)
{
    au_explanation why;
    au_platform_sys()->ops->explain(au_platform_sys(), 1234, &why);
    return why;
}

/** A made-up /proc. */
START_TEST(explanations)
{
    static const char none[] = "0000000000000000", all[] = "000001ffffffffff", some[] = "0000000000001000";
    char root[] = "/tmp/au-proc-XXXXXX", command[64];
    ck_assert_ptr_nonnull(mkdtemp(root));
    const char *before = au__linux_proc_root;
    au__linux_proc_root = root;
    ck_assert_int_eq(explained().right, AU_RIGHT_UNKNOWN);

    status_file(root, "self", 1000, none, none);
    status_file(root, "1234", 0, none, none);
    au_explanation why = explained();
    ck_assert_int_eq(why.right, AU_RIGHT_OTHER_USER);
    ck_assert_int_eq(why.uid, 0);
    ck_assert_int_eq(why.in_container, 0);

    status_file(root, "1234", 1000, none, none);
    write_file(root, "1234/environ", "");
    char path[64];
    snprintf(path, sizeof path, "%s/1234/environ", root);
    ck_assert(chown(path, 1000, 1000) == 0 || geteuid() != 0);
    if (geteuid() == 0 || geteuid() == 1000) {
        ck_assert_int_eq(explained().right, AU_RIGHT_NONE_MISSING);
        write_file(root, "sys/kernel/yama/ptrace_scope", "1\n");
        why = explained();
        ck_assert_int_eq(why.right, AU_RIGHT_PTRACE_SCOPE);
        ck_assert_int_eq(why.scope, 1);
        write_file(root, "sys/kernel/yama/ptrace_scope", "0\n");
        ck_assert_int_eq(explained().right, AU_RIGHT_NONE_MISSING);
    }
    status_file(root, "1234", 1000, some, some);
    ck_assert_int_eq(explained().right, AU_RIGHT_CAPABILITY);
    if (geteuid() == 0) {
        status_file(root, "1234", 1000, none, none);
        ck_assert_int_eq(chown(path, 0, 0), 0);
        ck_assert_int_eq(explained().right, AU_RIGHT_NOT_DUMPABLE);
    }

    status_file(root, "self", 0, all, all); /* we may everything, but for Yama's last word */
    status_file(root, "1234", 1000, none, none);
    ck_assert_int_eq(explained().right, AU_RIGHT_NONE_MISSING);
    write_file(root, "sys/kernel/yama/ptrace_scope", "3\n");
    why = explained();
    ck_assert_int_eq(why.right, AU_RIGHT_PTRACE_SCOPE);
    ck_assert_int_eq(why.scope, 3);

    ck_assert_int_eq(why.is_root, 1);
    ck_assert_int_eq(why.may_trace, 1);
    write_file(root, "sys/kernel/yama/ptrace_scope", "1\n"); /* our capability counts in our user namespace alone */
    write_file(root, "self/ns/nothing", "");
    write_file(root, "1234/ns/nothing", "");
    char ours[64], theirs[64];
    snprintf(ours, sizeof ours, "%s/self/ns/user", root);
    snprintf(theirs, sizeof theirs, "%s/1234/ns/user", root);
    ck_assert_int_eq(symlink("user:[1]", ours), 0);
    ck_assert_int_eq(symlink("user:[2]", theirs), 0);
    ck_assert_int_eq(explained().right, AU_RIGHT_NAMESPACE);
    ck_assert_int_eq(unlink(theirs), 0);
    ck_assert_int_eq(symlink("user:[1]", theirs), 0);
    ck_assert_int_eq(explained().right, AU_RIGHT_NONE_MISSING);

    write_file(root, "1/cgroup", "12:pids:/docker/0123456789abcdef\n"); /* root in a container */
    write_file(root, "sys/kernel/yama/ptrace_scope", "1\n");
    status_file(root, "self", 0, some, some);
    status_file(root, "1234", 0, some, some);
    why = explained();
    ck_assert_int_eq(why.right, AU_RIGHT_SECCOMP);
    ck_assert_int_eq(why.in_container, 1);
    ck_assert_int_eq(why.is_root, 1);
    ck_assert_int_eq(why.may_trace, 0);

    au__linux_proc_root = before;
    snprintf(command, sizeof command, "rm -rf %s", root);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

/** For real: nobody's process looks at ours. */
START_TEST(permission_denied)
{
    if (geteuid() != 0) {
        printf("linux: permission_denied NOT RUN: needs root to become somebody else\n");
        return;
    }
    pid_t us = getpid(), pid = fork();
    if (pid == 0) {
        if (setgid(65534) != 0 || setuid(65534) != 0) {
            _exit(9);
        }
        au_proc *p = NULL;
        au_error *error = au_platform_sys()->ops->open(au_platform_sys(), us, AU_WANT_READ, &p);
        char message[80];
        snprintf(message, sizeof message, "Insufficient permissions to read process %d", (int)us);
        if (!error || error->code != AU_ERR_PERMISSION || strcmp(error->message, message) != 0) {
            _exit(1);
        }
        if (!error->cause || !error->hint ||
            (!strstr(error->hint, "sudo") && !strstr(error->hint, "--cap-add SYS_PTRACE"))) {
            _exit(2);
        }
        _exit(0);
    }
    int status;
    waitpid(pid, &status, 0);
    ck_assert_int_eq(status, 0);
}
END_TEST

TCase *tcase_linux(void)
{
    TCase *tcase = tcase_create("linux");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, maps_lines);
    tcase_add_test(tcase, many_regions);
    tcase_add_test(tcase, read_through_mem);
    tcase_add_test(tcase, odd_processes);
    tcase_add_test(tcase, first_thread_has_ended);
    tcase_add_test(tcase, program_of_32_bits);
    tcase_add_test(tcase, deleted_and_replaced);
    tcase_add_test(tcase, run_through_the_loader);
    tcase_add_test(tcase, chrooted);
    tcase_add_test(tcase, foreign_ids);
    tcase_add_test(tcase, no_descriptors);
    tcase_add_test(tcase, slots_come_and_go);
    tcase_add_test(tcase, explanations);
    tcase_add_test(tcase, permission_denied);
    return tcase;
}
