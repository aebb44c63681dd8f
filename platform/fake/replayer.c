/* SPDX-License-Identifier: Apache-2.0 */
/* AU_REPLAY_ORDERED: the log from front to back. AU_REPLAY_LAST is replay_last.c. */
#include "platform/fake/replayer.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "platform/fake/internal.h"
#include "platform/fake/replay.h"

typedef struct ordered_proc {
    au_proc proc;
    au_replayer *replayer;
    uint64_t number;
    au__pages pages; /* what the log has told so far: bytes that it does not repeat are here */
} ordered_proc;

static ordered_proc *ordered(au_proc *proc)
{
    return (ordered_proc *)proc;
}

static au_replayer *replayer_of(au_proc *proc)
{
    return ordered(proc)->replayer;
}

/** The content of the next record if it is of that kind and handle; `mark` allows to give it back. */
static int next_is(au_replayer *replayer, au_log_kind kind, uint64_t handle, au__cursor *content, au__cursor *mark)
{
    unsigned found;
    *mark = replayer->at;
    if (au__next_record(&replayer->at, &found, content) == 1 && found == kind && au__get_number(content) == handle) {
        return 1;
    }
    replayer->at = *mark;
    replayer->misses++;
    return 0;
}

static void give_back(au_replayer *replayer, const au__cursor *mark)
{
    replayer->at = *mark;
    replayer->misses++;
}

static au_error *not_next(const char *what)
{
    return au_error_cause(au_error_create(AU_ERR_VALUE, 0, "The log does not go on with %s", what),
                          "this run asks other questions than the recorded one");
}

static au_error *ord_open(au_sys *sys, au_pid pid, unsigned want, au_proc **out)
{
    au_replayer *replayer = (au_replayer *)sys;
    au__cursor content, mark;
    if (!next_is(replayer, AU_LOG_OPEN, 0, &content, &mark)) {
        return not_next("open");
    }
    if (au__get_signed(&content) != pid || au__get_number(&content) != want) {
        give_back(replayer, &mark);
        return not_next("open of that pid");
    }
    au_error *error = au__get_error(&content);
    if (error) {
        return error;
    }
    ordered_proc *op = calloc(1, sizeof *op);
    if (!op) {
        return au_error_memory();
    }
    op->proc = (au_proc){&replayer->table, pid};
    op->replayer = replayer;
    op->number = ++replayer->handles;
    *out = &op->proc;
    return NULL;
}

static void ord_close(au_proc *proc)
{
    if (!proc) {
        return;
    }
    au__cursor content, mark;
    (void)next_is(replayer_of(proc), AU_LOG_CLOSE, ordered(proc)->number, &content, &mark);
    au__pages_deinit(&ordered(proc)->pages);
    free(proc);
}

static au_outcome ord_status(au_proc *proc, au_proc_status *out)
{
    au__cursor content, mark;
    if (!next_is(replayer_of(proc), AU_LOG_STATUS, ordered(proc)->number, &content, &mark)) {
        return AU_NOT_KNOWN;
    }
    return au__get_status(&content, out);
}

static au_outcome ord_read(au_proc *proc, au_addr addr, void *buf, size_t len)
{
    au_replayer *replayer = replayer_of(proc);
    au__cursor content, mark;
    if (!next_is(replayer, AU_LOG_READ, ordered(proc)->number, &content, &mark)) {
        return AU_NOT_KNOWN;
    }
    uint64_t asked = au__get_number(&content), length = au__get_number(&content);
    if (asked != addr || length != len) {
        give_back(replayer, &mark);
        return AU_NOT_KNOWN;
    }
    return au__get_memory(&content, &ordered(proc)->pages, addr, buf, len);
}

static size_t miss_all(au_piece *pieces, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        pieces[i].outcome = AU_NOT_KNOWN;
    }
    return 0;
}

static size_t ord_read_many(au_proc *proc, au_piece *pieces, size_t n)
{
    au_replayer *replayer = replayer_of(proc);
    au__cursor content, mark;
    if (!next_is(replayer, AU_LOG_READ_MANY, ordered(proc)->number, &content, &mark)) {
        return miss_all(pieces, n);
    }
    au__cursor look = content;
    int same = au__get_number(&look) == n;
    for (size_t i = 0; same && i < n; i++) {
        same = au__get_number(&look) == pieces[i].addr && au__get_number(&look) == pieces[i].len;
        au__skip_memory(&look);
    }
    if (!same) {
        give_back(replayer, &mark);
        return miss_all(pieces, n);
    }
    size_t ok = 0;
    au__get_number(&content);
    for (size_t i = 0; i < n; i++) {
        au__get_number(&content);
        au__get_number(&content);
        pieces[i].outcome =
            (uint32_t)au__get_memory(&content, &ordered(proc)->pages, pieces[i].addr, pieces[i].buf, pieces[i].len);
        ok += pieces[i].outcome == AU_OK;
    }
    return ok;
}

/** The error after a list, read ahead of showing it. */
static au_error *list_error(au__cursor content, au_log_kind kind)
{
    switch (kind) {
    case AU_LOG_REGIONS:
        au__show_regions(&content, NULL, NULL);
        break;
    case AU_LOG_MODULES:
        au__show_modules(&content, NULL, NULL);
        break;
    default:
        au__show_processes(&content, NULL, NULL);
        break;
    }
    return au__get_error(&content);
}

static au_error *ord_regions(au_proc *proc, au_region_fn fn, void *baton)
{
    au__cursor content, mark;
    if (!next_is(replayer_of(proc), AU_LOG_REGIONS, ordered(proc)->number, &content, &mark)) {
        return not_next("regions");
    }
    au_error *error = list_error(content, AU_LOG_REGIONS);
    if (!error) {
        au__show_regions(&content, fn, baton);
    }
    return error;
}

static au_error *ord_modules(au_proc *proc, au_module_fn fn, void *baton)
{
    au__cursor content, mark;
    if (!next_is(replayer_of(proc), AU_LOG_MODULES, ordered(proc)->number, &content, &mark)) {
        return not_next("modules");
    }
    au_error *error = list_error(content, AU_LOG_MODULES);
    if (!error) {
        au__show_modules(&content, fn, baton);
    }
    return error;
}

static au_error *ord_module_read(au_proc *proc, uint64_t module_id, uint64_t offset, void *buf, size_t len, size_t *got,
                                 au_module_source *source)
{
    au_replayer *replayer = replayer_of(proc);
    au__cursor content, mark;
    if (!next_is(replayer, AU_LOG_MODULE_READ, ordered(proc)->number, &content, &mark)) {
        return not_next("module_read");
    }
    if (au__get_number(&content) != module_id || au__get_number(&content) != offset ||
        au__get_number(&content) != len) {
        give_back(replayer, &mark);
        return not_next("module_read of that place");
    }
    au_error *error = au__get_error(&content);
    if (error) {
        return error;
    }
    *source = (au_module_source)au__get_number(&content);
    const uint8_t *bytes = au__get_bytes(&content, got);
    *got = *got < len ? *got : len;
    if (*got) {
        memcpy(buf, bytes, *got);
    }
    return NULL;
}

static au_error *ord_threads(au_proc *proc, au_thread *out, size_t cap, size_t *n)
{
    au_replayer *replayer = replayer_of(proc);
    au__cursor content, mark;
    if (!next_is(replayer, AU_LOG_THREADS, ordered(proc)->number, &content, &mark)) {
        return not_next("threads");
    }
    if (au__get_number(&content) != cap) {
        give_back(replayer, &mark);
        return not_next("threads with that capacity");
    }
    au_error *error = au__get_error(&content);
    if (error) {
        return error;
    }
    *n = (size_t)au__get_number(&content);
    for (size_t i = 0; i < *n && i < cap && !content.bad; i++) {
        out[i].tid = au__get_signed(&content);
        out[i].start_time_ns = au__get_number(&content);
    }
    return NULL;
}

static size_t ord_thread_states(au_proc *proc, au_thread_state *states, size_t n)
{
    au_replayer *replayer = replayer_of(proc);
    au__cursor content, mark;
    int same = next_is(replayer, AU_LOG_THREAD_STATES, ordered(proc)->number, &content, &mark);
    if (same) {
        au__cursor look = content;
        same = au__get_number(&look) == n;
        for (size_t i = 0; same && i < n; i++) {
            same = au__get_signed(&look) == states[i].tid && au__get_number(&look) == states[i].wanted;
            int numbers = 3 + !!(states[i].wanted & AU_STATE_CPU) + !!(states[i].wanted & AU_STATE_WAITED);
            for (int skip = 0; skip < numbers; skip++) {
                au__get_number(&look);
            }
        }
        if (!same) {
            give_back(replayer, &mark);
        }
    }
    size_t ok = 0;
    if (same) {
        au__get_number(&content);
    }
    for (size_t i = 0; i < n; i++) {
        au_thread_state *state = &states[i];
        if (!same) {
            state->outcome = AU_NOT_KNOWN;
            continue;
        }
        au__get_signed(&content);
        au__get_number(&content);
        state->outcome = (uint32_t)au__get_number(&content);
        state->run = (au_run_state)au__get_number(&content);
        state->switches = au__get_number(&content);
        if (state->wanted & AU_STATE_CPU) {
            state->cpu_ns = au__get_number(&content);
        }
        if (state->wanted & AU_STATE_WAITED) {
            state->waited_ns = au__get_number(&content);
        }
        state->slot = 0;
        ok += state->outcome == AU_OK;
    }
    return ok;
}

static au_outcome ord_thread_id_of(au_proc *proc, au_id_kind kind, uint64_t value, au_tid *out)
{
    au_replayer *replayer = replayer_of(proc);
    au__cursor content, mark;
    if (!next_is(replayer, AU_LOG_THREAD_ID_OF, ordered(proc)->number, &content, &mark)) {
        return AU_NOT_KNOWN;
    }
    if (au__get_number(&content) != kind || au__get_number(&content) != value) {
        give_back(replayer, &mark);
        return AU_NOT_KNOWN;
    }
    au_outcome outcome = (au_outcome)au__get_number(&content);
    if (outcome == AU_OK) {
        *out = au__get_signed(&content);
    }
    return outcome;
}

static au_outcome ord_thread_name(au_proc *proc, au_tid tid, char *buf, size_t cap)
{
    au_replayer *replayer = replayer_of(proc);
    au__cursor content, mark;
    if (!next_is(replayer, AU_LOG_THREAD_NAME, ordered(proc)->number, &content, &mark)) {
        return AU_NOT_KNOWN;
    }
    if (au__get_signed(&content) != tid) {
        give_back(replayer, &mark);
        return AU_NOT_KNOWN;
    }
    au_outcome outcome = (au_outcome)au__get_number(&content);
    const char *name = au__get_text(&content);
    if (outcome == AU_OK) {
        au__copy_name(buf, cap, name);
    }
    return outcome;
}

static au_outcome ord_usage(au_proc *proc, au_usage *out)
{
    au__cursor content, mark;
    if (!next_is(replayer_of(proc), AU_LOG_USAGE, ordered(proc)->number, &content, &mark)) {
        return AU_NOT_KNOWN;
    }
    return au__get_usage(&content, out);
}

static au_error *ord_processes(au_sys *sys, au_process_fn fn, void *baton)
{
    au__cursor content, mark;
    if (!next_is((au_replayer *)sys, AU_LOG_PROCESSES, 0, &content, &mark)) {
        return not_next("processes");
    }
    au_error *error = list_error(content, AU_LOG_PROCESSES);
    if (!error) {
        au__show_processes(&content, fn, baton);
    }
    return error;
}

static uint64_t ord_now(au_sys *sys)
{
    au_replayer *replayer = (au_replayer *)sys;
    au__cursor content, mark;
    if (next_is(replayer, AU_LOG_NOW, 0, &content, &mark)) {
        replayer->time = au__get_number(&content);
    }
    return replayer->time;
}

static uint64_t ord_sleep_until(au_sys *sys, uint64_t deadline_ns)
{
    au_replayer *replayer = (au_replayer *)sys;
    au__cursor content, mark;
    if (next_is(replayer, AU_LOG_SLEEP_UNTIL, 0, &content, &mark)) {
        if (au__get_number(&content) == deadline_ns) {
            replayer->time = au__get_number(&content);
            return replayer->time;
        }
        give_back(replayer, &mark);
    }
    if (replayer->time < deadline_ns) {
        replayer->time = deadline_ns; /* so that a caller who has left the log still comes to an end */
    }
    return replayer->time;
}

static void ord_wake(au_sys *sys)
{
    (void)sys; /* what it did is in the recorded answer of sleep_until */
}

static void ord_explain(au_sys *sys, au_pid pid, au_explanation *out)
{
    au_replayer *replayer = (au_replayer *)sys;
    au__cursor content, mark;
    *out = (au_explanation){.right = AU_RIGHT_UNKNOWN, .uid = -1};
    if (!next_is(replayer, AU_LOG_EXPLAIN, 0, &content, &mark)) {
        return;
    }
    if (au__get_signed(&content) != pid) {
        give_back(replayer, &mark);
        return;
    }
    au__get_explanation(&content, out);
}

static const au_proc_ops ordered_ops = {
    .size = sizeof(au_proc_ops),
    .name = "replay",
    .open = ord_open,
    .close = ord_close,
    .status = ord_status,
    .read = ord_read,
    .read_many = ord_read_many,
    .regions = ord_regions,
    .modules = ord_modules,
    .module_read = ord_module_read,
    .threads = ord_threads,
    .thread_states = ord_thread_states,
    .thread_id_of = ord_thread_id_of,
    .thread_name = ord_thread_name,
    .usage = ord_usage,
    .processes = ord_processes,
    .suspend = au__fake_suspend,
    .resume = au__fake_resume,
    .registers = au__fake_registers,
    .unwind = au__fake_unwind,
    .symbolise = au__fake_symbolise,
    .kernel_stack = au__fake_kernel_stack,
    .now = ord_now,
    .sleep_until = ord_sleep_until,
    .wake = ord_wake,
    .explain = ord_explain,
};

/* ---- the parts of records that both modes read ------------------------------------------------------------------- */

au_outcome au__get_status(au__cursor *content, au_proc_status *out)
{
    au_outcome outcome = (au_outcome)au__get_number(content);
    au_proc_status status = {0};
    status.state = (int)au__get_number(content);
    status.generation = (uint32_t)au__get_number(content);
    status.pointer_bytes = (uint32_t)au__get_number(content);
    status.page_bytes = (uint32_t)au__get_number(content);
    status.start_time_ns = au__get_number(content);
    status.list_stamp = au__get_number(content);
    if (outcome == AU_OK) {
        *out = status;
    }
    return outcome;
}

au_outcome au__get_usage(au__cursor *content, au_usage *out)
{
    au_outcome outcome = (au_outcome)au__get_number(content);
    if (outcome == AU_OK) {
        out->resident_bytes = au__get_number(content);
        out->cpu_ns = au__get_number(content);
        out->cpu_granularity_ns = au__get_number(content);
    }
    return outcome;
}

void au__get_explanation(au__cursor *content, au_explanation *out)
{
    out->right = (au_right)au__get_number(content);
    out->uid = au__get_signed(content);
    out->scope = (int)au__get_signed(content);
    out->in_container = (int)au__get_number(content);
}

au_outcome au__get_memory(au__cursor *content, au__pages *pages, au_addr addr, void *buf, size_t len)
{
    au_outcome outcome = (au_outcome)au__get_number(content);
    if (outcome == AU_FAULT) {
        au__pages_fault(pages, addr, len);
    }
    if (outcome != AU_OK) {
        return outcome;
    }
    if (au__get_number(content) == 0) {
        size_t count;
        const uint8_t *bytes = au__get_bytes(content, &count);
        if (count != len || (len && au__pages_put(pages, addr, bytes, len) != 0)) {
            return AU_NOT_KNOWN;
        }
    }
    return buf ? au__pages_get(pages, addr, buf, len) : AU_OK;
}

void au__skip_memory(au__cursor *content)
{
    size_t count;
    uint64_t outcome = au__get_number(content);
    uint64_t same = outcome == AU_OK ? au__get_number(content) : 1;
    if (!same) {
        au__get_bytes(content, &count);
    }
}

void au__copy_name(char *buf, size_t cap, const char *name)
{
    size_t len = name ? strlen(name) : 0;
    if (cap) {
        len = len < cap - 1 ? len : cap - 1;
        memcpy(buf, name ? name : "", len);
        buf[len] = 0;
    }
}

/* ---- creation ------------------------------------------------------------------------------------------------- */

au_error *au_replayer_create(const au_buf *log, au_replay_mode mode, au_replayer **out)
{
    au_replayer *replayer = calloc(1, sizeof *replayer);
    if (!replayer) {
        return au_error_memory();
    }
    replayer->mode = mode;
    replayer->time = 1000000000u;
    replayer->at = (au__cursor){log->data, log->data + log->len, 0};
    if (log->len < 8 || memcmp(log->data, "AULOG 1\n", 8) != 0) {
        free(replayer);
        return au_error_create(AU_ERR_VALUE, 0, "These %zu bytes are no log of a run (or of another version)",
                               log->len);
    }
    replayer->at.at += 8;
    replayer->provenance = au__get_text(&replayer->at);
    uint64_t caps = au__get_number(&replayer->at);
    if (replayer->at.bad) {
        free(replayer);
        return au_error_create(AU_ERR_VALUE, 0, "The log of a run is cut within its head");
    }
    au__cursor look = replayer->at, content;
    unsigned kind;
    int more;
    while ((more = au__next_record(&look, &kind, &content)) == 1) {
        if (kind == AU_LOG_OPEN && !replayer->pid) {
            au__get_number(&content);
            replayer->pid = au__get_signed(&content);
        }
    }
    if (more < 0) {
        free(replayer);
        return au_error_create(AU_ERR_VALUE, 0, "The log of a run is cut within a record");
    }
    replayer->table = mode == AU_REPLAY_ORDERED ? ordered_ops : au__last_ops;
    replayer->table.caps = caps;
    replayer->sys.ops = &replayer->table;
    if (mode == AU_REPLAY_LAST && au__last_build(replayer) != 0) {
        au_replayer_destroy(replayer);
        return au_error_memory();
    }
    *out = replayer;
    return NULL;
}

void au_replayer_destroy(au_replayer *replayer)
{
    if (replayer) {
        au__last_deinit(replayer);
        free(replayer);
    }
}

au_sys *au_replayer_sys(au_replayer *replayer)
{
    return &replayer->sys;
}

const char *au_replayer_provenance(const au_replayer *replayer)
{
    return replayer->provenance ? replayer->provenance : "";
}

au_pid au_replayer_pid(const au_replayer *replayer)
{
    return replayer->pid;
}

uint64_t au_replayer_misses(const au_replayer *replayer)
{
    return replayer->misses;
}

int au_replayer_at_end(const au_replayer *replayer)
{
    return replayer->at.at >= replayer->at.end;
}
