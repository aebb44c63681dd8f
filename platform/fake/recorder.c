/* SPDX-License-Identifier: Apache-2.0 */
#include "platform/fake/recorder.h"

#include <stdlib.h>
#include <string.h>

#include "platform/fake/internal.h"

struct au_recorder {
    au_sys sys;
    au_proc_ops table;
    au_sys *inner;
    au_buf log, record;
    uint64_t handles;
    size_t lost; /* records that memory did not suffice for */
};

typedef struct recorded_proc {
    au_proc proc;
    au_recorder *recorder;
    au_proc *inner;
    uint64_t number;
    au__pages pages; /* as the log has told them so far */
} recorded_proc;

static recorded_proc *recorded(au_proc *proc)
{
    return (recorded_proc *)proc;
}

/** Begins a record; its content goes to recorder->record. */
static au_buf *begin(au_recorder *recorder, uint64_t handle)
{
    au_buf_reset(&recorder->record);
    au__put_number(&recorder->record, handle);
    return &recorder->record;
}

static void end(au_recorder *recorder, au_log_kind kind)
{
    if (au_buf_reserve(&recorder->log, recorder->record.len + 20) != 0) {
        recorder->lost++;
        return;
    }
    au__put_number(&recorder->log, kind);
    au__put_bytes(&recorder->log, recorder->record.data, recorder->record.len);
}

static void put_memory(recorded_proc *rp, au_buf *record, au_addr addr, const void *bytes, size_t len,
                       au_outcome outcome)
{
    au__put_number(record, outcome);
    if (outcome == AU_FAULT) {
        au__pages_fault(&rp->pages, addr, len);
    }
    if (outcome != AU_OK) {
        return;
    }
    uint8_t *known = malloc(len ? len : 1);
    int same = known && au__pages_get(&rp->pages, addr, known, len) == AU_OK && memcmp(known, bytes, len) == 0;
    free(known);
    au__put_number(record, (uint64_t)same);
    if (!same) {
        au__put_bytes(record, bytes, len);
        if (au__pages_put(&rp->pages, addr, bytes, len) != 0) {
            rp->recorder->lost++;
        }
    }
}

static au_error *rec_open(au_sys *sys, au_pid pid, unsigned want, au_proc **out)
{
    au_recorder *recorder = (au_recorder *)sys;
    recorded_proc *rp = calloc(1, sizeof *rp);
    if (!rp) {
        return au_error_memory();
    }
    au_error *error = recorder->inner->ops->open(recorder->inner, pid, want, &rp->inner);
    au_buf *record = begin(recorder, 0);
    au__put_signed(record, pid);
    au__put_number(record, want);
    au__put_error(record, error);
    end(recorder, AU_LOG_OPEN);
    if (error) {
        free(rp);
        return error;
    }
    rp->proc = (au_proc){&recorder->table, pid};
    rp->recorder = recorder;
    rp->number = ++recorder->handles;
    *out = &rp->proc;
    return NULL;
}

static void rec_close(au_proc *proc)
{
    if (!proc) {
        return;
    }
    recorded_proc *rp = recorded(proc);
    rp->inner->ops->close(rp->inner);
    begin(rp->recorder, rp->number);
    end(rp->recorder, AU_LOG_CLOSE);
    au__pages_deinit(&rp->pages);
    free(rp);
}

static au_outcome rec_status(au_proc *proc, au_proc_status *out)
{
    recorded_proc *rp = recorded(proc);
    au_proc_status status = {0};
    au_outcome outcome = rp->inner->ops->status(rp->inner, &status);
    au_buf *record = begin(rp->recorder, rp->number);
    au__put_number(record, outcome);
    au__put_number(record, (uint64_t)status.state);
    au__put_number(record, status.generation);
    au__put_number(record, status.pointer_bytes);
    au__put_number(record, status.page_bytes);
    au__put_number(record, status.start_time_ns);
    au__put_number(record, status.list_stamp);
    end(rp->recorder, AU_LOG_STATUS);
    if (outcome == AU_OK) {
        *out = status;
    }
    return outcome;
}

static au_outcome rec_read(au_proc *proc, au_addr addr, void *buf, size_t len)
{
    recorded_proc *rp = recorded(proc);
    au_outcome outcome = rp->inner->ops->read(rp->inner, addr, buf, len);
    au_buf *record = begin(rp->recorder, rp->number);
    au__put_number(record, addr);
    au__put_number(record, len);
    put_memory(rp, record, addr, buf, len, outcome);
    end(rp->recorder, AU_LOG_READ);
    return outcome;
}

static size_t rec_read_many(au_proc *proc, au_piece *pieces, size_t n)
{
    recorded_proc *rp = recorded(proc);
    size_t ok = rp->inner->ops->read_many(rp->inner, pieces, n);
    au_buf *record = begin(rp->recorder, rp->number);
    au__put_number(record, n);
    for (size_t i = 0; i < n; i++) {
        au__put_number(record, pieces[i].addr);
        au__put_number(record, pieces[i].len);
        put_memory(rp, record, pieces[i].addr, pieces[i].buf, pieces[i].len, (au_outcome)pieces[i].outcome);
    }
    end(rp->recorder, AU_LOG_READ_MANY);
    return ok;
}

/* Lists: the whole list is recorded, and shown from the copy, so that a caller who stops early leaves a full record.
 * Each item is preceded by 1, the list is ended by 0, then comes the error. */

static int put_region(void *baton, const au_region *region)
{
    au_buf *record = baton;
    au__put_number(record, 1);
    au__put_number(record, region->start);
    au__put_number(record, region->end);
    au__put_number(record, region->perms);
    au__put_number(record, region->offset);
    au__put_number(record, region->file_id);
    au__put_text(record, region->path);
    au__put_number(record, (uint64_t)region->deleted);
    return 0;
}

static int put_module(void *baton, const au_module *module)
{
    au_buf *record = baton;
    au__put_number(record, 1);
    au__put_number(record, module->id);
    au__put_number(record, module->base);
    au__put_number(record, module->end);
    au__put_number(record, module->bias);
    au__put_text(record, module->path);
    au__put_number(record, (uint64_t)module->deleted);
    au__put_number(record, (uint64_t)module->is_main);
    au__put_number(record, (uint64_t)module->bits);
    au__put_bytes(record, module->build_id, module->build_id_len);
    return 0;
}

static int put_process(void *baton, const au_process *process)
{
    au_buf *record = baton;
    au__put_number(record, 1);
    au__put_signed(record, process->pid);
    au__put_signed(record, process->parent);
    au__put_number(record, process->start_time_ns);
    return 0;
}

typedef union shown {
    au_region_fn region;
    au_module_fn module;
    au_process_fn process;
} shown;

typedef enum show_what { SHOW_REGIONS, SHOW_MODULES, SHOW_PROCESSES } show_what;

/** Shows the list in the record, from a copy: the callback may read, which begins a record of its own. */
static au_error *show(const au_buf *record, size_t start, show_what what, shown fn, void *baton)
{
    au_buf copy = {0};
    if (au_buf_append(&copy, record->data + start, record->len - start) != 0) {
        return au_error_memory();
    }
    au__cursor from = {copy.data, copy.data + copy.len, 0};
    switch (what) {
    case SHOW_REGIONS:
        au__show_regions(&from, fn.region, baton);
        break;
    case SHOW_MODULES:
        au__show_modules(&from, fn.module, baton);
        break;
    case SHOW_PROCESSES:
        au__show_processes(&from, fn.process, baton);
        break;
    }
    au_buf_deinit(&copy);
    return NULL;
}

static au_error *rec_regions(au_proc *proc, au_region_fn fn, void *baton)
{
    recorded_proc *rp = recorded(proc);
    au_buf *record = begin(rp->recorder, rp->number);
    size_t start = record->len;
    au_error *error = rp->inner->ops->regions(rp->inner, put_region, record);
    au__put_number(record, 0);
    au__put_error(record, error);
    end(rp->recorder, AU_LOG_REGIONS);
    return error ? error : show(record, start, SHOW_REGIONS, (shown){.region = fn}, baton);
}

static au_error *rec_modules(au_proc *proc, au_module_fn fn, void *baton)
{
    recorded_proc *rp = recorded(proc);
    au_buf *record = begin(rp->recorder, rp->number);
    size_t start = record->len;
    au_error *error = rp->inner->ops->modules(rp->inner, put_module, record);
    au__put_number(record, 0);
    au__put_error(record, error);
    end(rp->recorder, AU_LOG_MODULES);
    return error ? error : show(record, start, SHOW_MODULES, (shown){.module = fn}, baton);
}

static au_error *rec_module_read(au_proc *proc, uint64_t module_id, uint64_t offset, void *buf, size_t len, size_t *got,
                                 au_module_source *source)
{
    recorded_proc *rp = recorded(proc);
    size_t count = 0;
    au_module_source from = AU_SOURCE_NONE;
    au_error *error = rp->inner->ops->module_read(rp->inner, module_id, offset, buf, len, &count, &from);
    au_buf *record = begin(rp->recorder, rp->number);
    au__put_number(record, module_id);
    au__put_number(record, offset);
    au__put_number(record, len);
    au__put_error(record, error);
    if (!error) {
        au__put_number(record, from);
        au__put_bytes(record, buf, count);
        *got = count;
        *source = from;
    }
    end(rp->recorder, AU_LOG_MODULE_READ);
    return error;
}

static au_error *rec_threads(au_proc *proc, au_thread *out, size_t cap, size_t *n)
{
    recorded_proc *rp = recorded(proc);
    size_t count = 0;
    au_error *error = rp->inner->ops->threads(rp->inner, out, cap, &count);
    au_buf *record = begin(rp->recorder, rp->number);
    au__put_number(record, cap);
    au__put_error(record, error);
    if (!error) {
        au__put_number(record, count);
        for (size_t i = 0; i < count && i < cap; i++) {
            au__put_signed(record, out[i].tid);
            au__put_number(record, out[i].start_time_ns);
        }
        *n = count;
    }
    end(rp->recorder, AU_LOG_THREADS);
    return error;
}

static size_t rec_thread_states(au_proc *proc, au_thread_state *states, size_t n)
{
    recorded_proc *rp = recorded(proc);
    size_t ok = rp->inner->ops->thread_states(rp->inner, states, n);
    au_buf *record = begin(rp->recorder, rp->number);
    au__put_number(record, n);
    for (size_t i = 0; i < n; i++) {
        au__put_signed(record, states[i].tid);
        au__put_number(record, states[i].wanted);
        au__put_number(record, states[i].outcome);
        au__put_number(record, states[i].run);
        au__put_number(record, states[i].switches);
        if (states[i].wanted & AU_STATE_CPU) { /* logs from before there was such a thing are read too */
            au__put_number(record, states[i].cpu_ns);
        }
        if (states[i].wanted & AU_STATE_WAITED) {
            au__put_number(record, states[i].waited_ns);
        }
    }
    end(rp->recorder, AU_LOG_THREAD_STATES);
    return ok;
}

static au_outcome rec_thread_id_of(au_proc *proc, au_id_kind kind, uint64_t value, au_tid *out)
{
    recorded_proc *rp = recorded(proc);
    au_tid tid = 0;
    au_outcome outcome = rp->inner->ops->thread_id_of(rp->inner, kind, value, &tid);
    au_buf *record = begin(rp->recorder, rp->number);
    au__put_number(record, kind);
    au__put_number(record, value);
    au__put_number(record, outcome);
    au__put_signed(record, tid);
    end(rp->recorder, AU_LOG_THREAD_ID_OF);
    if (outcome == AU_OK) {
        *out = tid;
    }
    return outcome;
}

static au_outcome rec_thread_name(au_proc *proc, au_tid tid, char *buf, size_t cap)
{
    recorded_proc *rp = recorded(proc);
    au_outcome outcome = rp->inner->ops->thread_name(rp->inner, tid, buf, cap);
    au_buf *record = begin(rp->recorder, rp->number);
    au__put_signed(record, tid);
    au__put_number(record, outcome);
    au__put_text(record, outcome == AU_OK && cap ? buf : NULL);
    end(rp->recorder, AU_LOG_THREAD_NAME);
    return outcome;
}

static au_outcome rec_usage(au_proc *proc, au_usage *out)
{
    recorded_proc *rp = recorded(proc);
    au_usage usage = {0};
    au_outcome outcome = rp->inner->ops->usage(rp->inner, &usage);
    au_buf *record = begin(rp->recorder, rp->number);
    au__put_number(record, outcome);
    au__put_number(record, usage.resident_bytes);
    au__put_number(record, usage.cpu_ns);
    au__put_number(record, usage.cpu_granularity_ns);
    end(rp->recorder, AU_LOG_USAGE);
    if (outcome == AU_OK) {
        *out = usage;
    }
    return outcome;
}

static au_error *rec_processes(au_sys *sys, au_process_fn fn, void *baton)
{
    au_recorder *recorder = (au_recorder *)sys;
    au_buf *record = begin(recorder, 0);
    size_t start = record->len;
    au_error *error = recorder->inner->ops->processes(recorder->inner, put_process, record);
    au__put_number(record, 0);
    au__put_error(record, error);
    end(recorder, AU_LOG_PROCESSES);
    return error ? error : show(record, start, SHOW_PROCESSES, (shown){.process = fn}, baton);
}

static uint64_t rec_now(au_sys *sys)
{
    au_recorder *recorder = (au_recorder *)sys;
    uint64_t now = recorder->inner->ops->now(recorder->inner);
    au__put_number(begin(recorder, 0), now);
    end(recorder, AU_LOG_NOW);
    return now;
}

static uint64_t rec_sleep_until(au_sys *sys, uint64_t deadline_ns)
{
    au_recorder *recorder = (au_recorder *)sys;
    uint64_t now = recorder->inner->ops->sleep_until(recorder->inner, deadline_ns);
    au_buf *record = begin(recorder, 0);
    au__put_number(record, deadline_ns);
    au__put_number(record, now);
    end(recorder, AU_LOG_SLEEP_UNTIL);
    return now;
}

static void rec_wake(au_sys *sys)
{
    /* Not recorded: it may come from a signal handler, and what it does shows in the answer of sleep_until. */
    au_sys *inner = ((au_recorder *)sys)->inner;
    inner->ops->wake(inner);
}

static void rec_explain(au_sys *sys, au_pid pid, au_explanation *out)
{
    au_recorder *recorder = (au_recorder *)sys;
    recorder->inner->ops->explain(recorder->inner, pid, out);
    au_buf *record = begin(recorder, 0);
    au__put_signed(record, pid);
    au__put_number(record, out->right);
    au__put_signed(record, out->uid);
    au__put_signed(record, out->scope);
    au__put_number(record, (uint64_t)out->in_container);
    end(recorder, AU_LOG_EXPLAIN);
}

static const au_proc_ops rec_ops = {
    .size = sizeof(au_proc_ops),
    .name = "recorder",
    .open = rec_open,
    .close = rec_close,
    .status = rec_status,
    .read = rec_read,
    .read_many = rec_read_many,
    .regions = rec_regions,
    .modules = rec_modules,
    .module_read = rec_module_read,
    .threads = rec_threads,
    .thread_states = rec_thread_states,
    .thread_id_of = rec_thread_id_of,
    .thread_name = rec_thread_name,
    .usage = rec_usage,
    .processes = rec_processes,
    .suspend = au__fake_suspend,
    .resume = au__fake_resume,
    .registers = au__fake_registers,
    .unwind = au__fake_unwind,
    .symbolise = au__fake_symbolise,
    .kernel_stack = au__fake_kernel_stack,
    .now = rec_now,
    .sleep_until = rec_sleep_until,
    .wake = rec_wake,
    .explain = rec_explain,
};

au_recorder *au_recorder_create(au_sys *inner, const char *provenance)
{
    au_recorder *recorder = calloc(1, sizeof *recorder);
    if (recorder) {
        recorder->table = rec_ops;
        recorder->table.caps = inner->ops->caps & AU__FAKE_CAPS;
        recorder->sys.ops = &recorder->table;
        recorder->inner = inner;
        (void)au_buf_append(&recorder->log, "AULOG 1\n", 8);
        au__put_text(&recorder->log, provenance ? provenance : "");
        au__put_number(&recorder->log, recorder->table.caps);
    }
    return recorder;
}

void au_recorder_destroy(au_recorder *recorder)
{
    if (recorder) {
        au_buf_deinit(&recorder->log);
        au_buf_deinit(&recorder->record);
        free(recorder);
    }
}

au_sys *au_recorder_sys(au_recorder *recorder)
{
    return &recorder->sys;
}

const au_buf *au_recorder_log(const au_recorder *recorder)
{
    return &recorder->log;
}

int au_recorder_failed(const au_recorder *recorder)
{
    return recorder->lost != 0;
}
