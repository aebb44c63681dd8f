/* SPDX-License-Identifier: Apache-2.0 */
/* AU_REPLAY_LAST: the last state that a log tells of. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "platform/fake/replay.h"

typedef struct last_thread {
    au_tid tid;
    au_run_state run;
    uint64_t switches, cpu_ns, waited_ns, start_time_ns;
    int has_state, has_name, listed;
    char name[64];
} last_thread;

typedef struct last_id {
    au_id_kind kind;
    uint64_t value;
    au_outcome outcome;
    au_tid tid;
} last_id;

typedef struct last_module {
    au_addr base;
    uint64_t id; /* in the newest list */
    au__pages pages;
    uint64_t end; /* where its bytes end, if a read came to the end */
    au_module_source source;
} last_module;

typedef struct au__last_proc {
    au_pid pid;
    au__pages pages;
    au_proc_status status;
    int has_status;
    au_usage usage;
    int has_usage;
    au__cursor regions, modules; /* the newest list, in the log's memory */
    last_module *module;
    size_t n_modules;
    last_thread *thread;
    size_t n_threads;
    int has_threads;
    last_id *id;
    size_t n_ids;
} au__last_proc;

typedef struct last_handle {
    au_proc proc;
    au_replayer *replayer;
    au__last_proc *last;
} last_handle;

/** Appends one zeroed item. */
static void *append(void *array, size_t *n, size_t size)
{
    void **at = array;
    char *grown = realloc(*at, (*n + 1) * size);
    if (!grown) {
        return NULL;
    }
    *at = grown;
    memset(grown + *n * size, 0, size);
    return grown + (*n)++ * size;
}

static au__last_proc *last_of_pid(au_replayer *replayer, au_pid pid)
{
    for (size_t i = 0; i < replayer->n_procs; i++) {
        if (replayer->procs[i].pid == pid) {
            return &replayer->procs[i];
        }
    }
    return NULL;
}

static last_thread *thread_of(au__last_proc *last, au_tid tid, int make)
{
    for (size_t i = 0; i < last->n_threads; i++) {
        if (last->thread[i].tid == tid) {
            return &last->thread[i];
        }
    }
    last_thread *made = make ? append(&last->thread, &last->n_threads, sizeof *made) : NULL;
    if (made) {
        made->tid = tid;
    }
    return made;
}

static last_module *module_of(au__last_proc *last, uint64_t id)
{
    for (size_t i = 0; i < last->n_modules; i++) {
        if (last->module[i].id == id) {
            return &last->module[i];
        }
    }
    return NULL;
}

typedef struct relist {
    au__last_proc *last;
    int failed;
} relist;

static int relist_module(void *baton, const au_module *module)
{
    relist *to = baton;
    for (size_t i = 0; i < to->last->n_modules; i++) {
        if (to->last->module[i].base == module->base) {
            to->last->module[i].id = module->id;
            return 0;
        }
    }
    last_module *made = append(&to->last->module, &to->last->n_modules, sizeof *made);
    if (!made) {
        to->failed = 1;
        return 1;
    }
    made->base = module->base;
    made->id = module->id;
    made->end = UINT64_MAX;
    return 0;
}

static int learn_modules(au__last_proc *last, au__cursor content)
{
    au__cursor look = content;
    au__show_modules(&look, NULL, NULL);
    if (au__get_number(&look) != 0) {
        return 0; /* it failed: the list before stays */
    }
    last->modules = content;
    for (size_t i = 0; i < last->n_modules; i++) {
        last->module[i].id = 0;
    }
    relist to = {last, 0};
    au__show_modules(&content, relist_module, &to);
    return to.failed ? -1 : 0;
}

static int learn_module_read(au__last_proc *last, au__cursor content)
{
    uint64_t id = au__get_number(&content), offset = au__get_number(&content), len = au__get_number(&content);
    last_module *module = module_of(last, id);
    if (au__get_number(&content) != 0 || !module) { /* an error */
        return 0;
    }
    module->source = (au_module_source)au__get_number(&content);
    size_t got;
    const uint8_t *bytes = au__get_bytes(&content, &got);
    if (got < len) {
        module->end = offset + got;
    }
    return got ? au__pages_put(&module->pages, offset, bytes, got) : 0;
}

static int learn_threads(au__last_proc *last, au__cursor content)
{
    uint64_t cap = au__get_number(&content);
    if (au__get_number(&content) != 0) {
        return 0;
    }
    uint64_t n = au__get_number(&content);
    if (n > cap) {
        return 0; /* the caller asks again with more room; this list is not whole */
    }
    last->has_threads = 1;
    for (size_t i = 0; i < last->n_threads; i++) {
        last->thread[i].listed = 0;
    }
    for (uint64_t i = 0; i < n && !content.bad; i++) {
        last_thread *thread = thread_of(last, au__get_signed(&content), 1);
        uint64_t start = au__get_number(&content);
        if (!thread) {
            return -1;
        }
        thread->start_time_ns = start;
        thread->listed = 1;
    }
    return 0;
}

static int learn_states(au__last_proc *last, au__cursor content)
{
    uint64_t n = au__get_number(&content);
    for (uint64_t i = 0; i < n && !content.bad; i++) {
        last_thread *thread = thread_of(last, au__get_signed(&content), 1);
        uint64_t wanted = au__get_number(&content), outcome = au__get_number(&content);
        uint64_t run = au__get_number(&content), switches = au__get_number(&content);
        uint64_t cpu_ns = wanted & AU_STATE_CPU ? au__get_number(&content) : 0;
        uint64_t waited_ns = wanted & AU_STATE_WAITED ? au__get_number(&content) : 0;
        if (!thread) {
            return -1;
        }
        if (outcome == AU_OK && wanted) {
            thread->has_state = 1;
            if (wanted & AU_STATE_RUN) {
                thread->run = (au_run_state)run;
            }
            if (wanted & AU_STATE_SWITCHES) {
                thread->switches = switches;
            }
            if (wanted & AU_STATE_CPU) {
                thread->cpu_ns = cpu_ns;
            }
            if (wanted & AU_STATE_WAITED) {
                thread->waited_ns = waited_ns;
            }
        }
    }
    return 0;
}

static int learn_id(au__last_proc *last, au__cursor content)
{
    last_id found = {.kind = (au_id_kind)au__get_number(&content)};
    found.value = au__get_number(&content);
    found.outcome = (au_outcome)au__get_number(&content);
    found.tid = au__get_signed(&content);
    for (size_t i = 0; i < last->n_ids; i++) {
        if (last->id[i].kind == found.kind && last->id[i].value == found.value) {
            last->id[i] = found;
            return 0;
        }
    }
    last_id *made = append(&last->id, &last->n_ids, sizeof *made);
    if (!made) {
        return -1;
    }
    *made = found;
    return 0;
}

static int learn_reads(au__last_proc *last, au__cursor content, uint64_t n)
{
    for (uint64_t i = 0; i < n && !content.bad; i++) {
        uint64_t addr = au__get_number(&content), len = au__get_number(&content);
        (void)au__get_memory(&content, &last->pages, addr, NULL, (size_t)len);
    }
    return 0;
}

static int learn(au__last_proc *last, unsigned kind, au__cursor content)
{
    switch (kind) {
    case AU_LOG_STATUS: {
        au_proc_status status;
        /* The end of the process is not its last state of interest. */
        if (au__get_status(&content, &status) == AU_OK && status.state == AU_RUNNING) {
            last->status = status;
            last->has_status = 1;
        }
        return 0;
    }
    case AU_LOG_READ:
        return learn_reads(last, content, 1);
    case AU_LOG_READ_MANY: {
        uint64_t n = au__get_number(&content);
        return learn_reads(last, content, n);
    }
    case AU_LOG_REGIONS: {
        au__cursor look = content;
        au__show_regions(&look, NULL, NULL);
        if (au__get_number(&look) == 0) {
            last->regions = content;
        }
        return 0;
    }
    case AU_LOG_MODULES:
        return learn_modules(last, content);
    case AU_LOG_MODULE_READ:
        return learn_module_read(last, content);
    case AU_LOG_THREADS:
        return learn_threads(last, content);
    case AU_LOG_THREAD_STATES:
        return learn_states(last, content);
    case AU_LOG_THREAD_ID_OF:
        return learn_id(last, content);
    case AU_LOG_THREAD_NAME: {
        last_thread *thread = thread_of(last, au__get_signed(&content), 1);
        if (thread && au__get_number(&content) == AU_OK) {
            thread->has_name = 1;
            au__copy_name(thread->name, sizeof thread->name, au__get_text(&content));
        }
        return thread ? 0 : -1;
    }
    case AU_LOG_USAGE:
        last->has_usage |= au__get_usage(&content, &last->usage) == AU_OK;
        return 0;
    default:
        return 0;
    }
}

int au__last_build(au_replayer *replayer)
{
    size_t *handles = NULL; /* number - 1 to index into procs */
    size_t n_handles = 0;
    int failed = 0;
    au__cursor log = replayer->at, content;
    unsigned kind;
    while (!failed && au__next_record(&log, &kind, &content) == 1) {
        uint64_t number = au__get_number(&content);
        if (kind == AU_LOG_OPEN) {
            au_pid pid = au__get_signed(&content);
            au__get_number(&content);
            if (au__get_number(&content) != 0) {
                continue;
            }
            au__last_proc *last = last_of_pid(replayer, pid);
            if (!last) {
                last = append(&replayer->procs, &replayer->n_procs, sizeof *last);
            }
            size_t *handle = append(&handles, &n_handles, sizeof *handle);
            if (!last || !handle) {
                failed = 1;
                break;
            }
            last->pid = pid;
            *handle = (size_t)(last - replayer->procs);
        } else if (kind == AU_LOG_PROCESSES) {
            replayer->processes = content;
        } else if (kind == AU_LOG_EXPLAIN) {
            replayer->explained = content;
        } else if (number > 0 && number <= n_handles) {
            failed = learn(&replayer->procs[handles[number - 1]], kind, content) != 0;
        }
    }
    free(handles);
    return failed ? -1 : 0;
}

void au__last_deinit(au_replayer *replayer)
{
    for (size_t i = 0; i < replayer->n_procs; i++) {
        au__last_proc *last = &replayer->procs[i];
        au__pages_deinit(&last->pages);
        for (size_t m = 0; m < last->n_modules; m++) {
            au__pages_deinit(&last->module[m].pages);
        }
        free(last->module);
        free(last->thread);
        free(last->id);
    }
    free(replayer->procs);
    replayer->procs = NULL;
    replayer->n_procs = 0;
}

/* ---- members -------------------------------------------------------------------------------------------------- */

static au__last_proc *last_of(au_proc *proc)
{
    return ((last_handle *)proc)->last;
}

static au_outcome missed(au_proc *proc)
{
    ((last_handle *)proc)->replayer->misses++;
    return AU_NOT_KNOWN;
}

static au_error *not_recorded(au_proc *proc, const char *what)
{
    missed(proc);
    return au_error_create(AU_ERR_VALUE, 0, "The log of process %" PRId64 " holds no %s", proc->pid, what);
}

static au_error *last_open(au_sys *sys, au_pid pid, unsigned want, au_proc **out)
{
    au_replayer *replayer = (au_replayer *)sys;
    au__last_proc *last = last_of_pid(replayer, pid);
    if (!last || (want & AU_WANT_STOP)) {
        return au_error_cause(au_error_create(AU_ERR_OS, 0, "Cannot attach to process %" PRId64, pid),
                              "the log holds no such process");
    }
    last_handle *made = calloc(1, sizeof *made);
    if (!made) {
        return au_error_memory();
    }
    made->proc = (au_proc){&replayer->table, pid};
    made->replayer = replayer;
    made->last = last;
    *out = &made->proc;
    return NULL;
}

static void last_close(au_proc *proc)
{
    free(proc);
}

static au_outcome last_status(au_proc *proc, au_proc_status *out)
{
    au__last_proc *last = last_of(proc);
    if (!last->has_status) {
        return missed(proc);
    }
    *out = last->status;
    return AU_OK;
}

static au_outcome last_read(au_proc *proc, au_addr addr, void *buf, size_t len)
{
    au_outcome outcome = au__pages_get(&last_of(proc)->pages, addr, buf, len);
    return outcome == AU_NOT_KNOWN ? missed(proc) : outcome;
}

static size_t last_read_many(au_proc *proc, au_piece *pieces, size_t n)
{
    size_t ok = 0;
    for (size_t i = 0; i < n; i++) {
        pieces[i].outcome = (uint32_t)last_read(proc, pieces[i].addr, pieces[i].buf, pieces[i].len);
        ok += pieces[i].outcome == AU_OK;
    }
    return ok;
}

static au_error *last_regions(au_proc *proc, au_region_fn fn, void *baton)
{
    au__cursor list = last_of(proc)->regions;
    if (!list.at) {
        return not_recorded(proc, "list of regions");
    }
    au__show_regions(&list, fn, baton);
    return NULL;
}

static au_error *last_modules(au_proc *proc, au_module_fn fn, void *baton)
{
    au__cursor list = last_of(proc)->modules;
    if (!list.at) {
        return not_recorded(proc, "list of modules");
    }
    au__show_modules(&list, fn, baton);
    return NULL;
}

static au_error *last_module_read(au_proc *proc, uint64_t module_id, uint64_t offset, void *buf, size_t len,
                                  size_t *got, au_module_source *source)
{
    const last_module *module = module_id ? module_of(last_of(proc), module_id) : NULL;
    if (!module || module->source == AU_SOURCE_NONE) {
        return not_recorded(proc, "content of that module");
    }
    uint64_t left = offset < module->end ? module->end - offset : 0;
    size_t take = left < len ? (size_t)left : len;
    size_t whole = take;
    /* Fewer bytes than asked are allowed: as many as are known from there on. */
    while (take && au__pages_get(&module->pages, offset, buf, take) != AU_OK) {
        take = take > 64 ? take / 2 : take - 1;
    }
    if (whole && !take) {
        return not_recorded(proc, "content at that place of the module");
    }
    *got = take;
    *source = module->source;
    return NULL;
}

static au_error *last_threads(au_proc *proc, au_thread *out, size_t cap, size_t *n)
{
    const au__last_proc *last = last_of(proc);
    if (!last->has_threads) {
        return not_recorded(proc, "list of threads");
    }
    size_t count = 0;
    for (size_t i = 0; i < last->n_threads; i++) {
        if (last->thread[i].listed) {
            if (count < cap) {
                out[count] = (au_thread){last->thread[i].tid, last->thread[i].start_time_ns};
            }
            count++;
        }
    }
    *n = count;
    return NULL;
}

static size_t last_thread_states(au_proc *proc, au_thread_state *states, size_t n)
{
    size_t ok = 0;
    for (size_t i = 0; i < n; i++) {
        au_thread_state *state = &states[i];
        const last_thread *thread = thread_of(last_of(proc), state->tid, 0);
        state->slot = 0;
        state->outcome = AU_OK;
        if (state->wanted && (!thread || !thread->has_state)) {
            state->outcome = (uint32_t)missed(proc);
        } else if (state->wanted) {
            state->run = thread->run;
            state->switches = thread->switches;
            state->cpu_ns = thread->cpu_ns;
            state->waited_ns = thread->waited_ns;
        }
        ok += state->outcome == AU_OK;
    }
    return ok;
}

static au_outcome last_thread_id_of(au_proc *proc, au_id_kind kind, uint64_t value, au_tid *out)
{
    const au__last_proc *last = last_of(proc);
    for (size_t i = 0; i < last->n_ids; i++) {
        if (last->id[i].kind == kind && last->id[i].value == value) {
            if (last->id[i].outcome == AU_OK) {
                *out = last->id[i].tid;
            }
            return last->id[i].outcome;
        }
    }
    return missed(proc);
}

static au_outcome last_thread_name(au_proc *proc, au_tid tid, char *buf, size_t cap)
{
    const last_thread *thread = thread_of(last_of(proc), tid, 0);
    if (!thread || !thread->has_name) {
        return missed(proc);
    }
    au__copy_name(buf, cap, thread->name);
    return AU_OK;
}

static au_outcome last_usage(au_proc *proc, au_usage *out)
{
    if (!last_of(proc)->has_usage) {
        return missed(proc);
    }
    *out = last_of(proc)->usage;
    return AU_OK;
}

static au_error *last_processes(au_sys *sys, au_process_fn fn, void *baton)
{
    au__cursor list = ((au_replayer *)sys)->processes;
    if (!list.at) {
        ((au_replayer *)sys)->misses++;
        return au_error_create(AU_ERR_VALUE, 0, "The log holds no list of processes");
    }
    au__show_processes(&list, fn, baton);
    return NULL;
}

static uint64_t last_now(au_sys *sys)
{
    return ((au_replayer *)sys)->time;
}

static uint64_t last_sleep_until(au_sys *sys, uint64_t deadline_ns)
{
    au_replayer *replayer = (au_replayer *)sys;
    if (!atomic_exchange(&replayer->woken, 0) && replayer->time < deadline_ns) {
        replayer->time = deadline_ns;
    }
    return replayer->time;
}

static void last_wake(au_sys *sys)
{
    atomic_store(&((au_replayer *)sys)->woken, 1);
}

static void last_explain(au_sys *sys, au_pid pid, au_explanation *out)
{
    au__cursor content = ((au_replayer *)sys)->explained;
    *out = (au_explanation){.right = AU_RIGHT_UNKNOWN, .uid = -1};
    if (content.at && au__get_signed(&content) == pid) {
        au__get_explanation(&content, out);
    }
}

const au_proc_ops au__last_ops = {
    .size = sizeof(au_proc_ops),
    .name = "replay-last",
    .open = last_open,
    .close = last_close,
    .status = last_status,
    .read = last_read,
    .read_many = last_read_many,
    .regions = last_regions,
    .modules = last_modules,
    .module_read = last_module_read,
    .threads = last_threads,
    .thread_states = last_thread_states,
    .thread_id_of = last_thread_id_of,
    .thread_name = last_thread_name,
    .usage = last_usage,
    .processes = last_processes,
    .suspend = au__fake_suspend,
    .resume = au__fake_resume,
    .registers = au__fake_registers,
    .unwind = au__fake_unwind,
    .symbolise = au__fake_symbolise,
    .kernel_stack = au__fake_kernel_stack,
    .now = last_now,
    .sleep_until = last_sleep_until,
    .wake = last_wake,
    .explain = last_explain,
};
