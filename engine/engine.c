/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * The run: when to look, whom to look at, and what to hand to the sink.
 */
#include <stdlib.h>

#include "engine/internal.h"

#define MS UINT64_C(1000000)
#define HEADS_NS (MS * 2 / 5) /* how often the heads of the lists are looked at while there is one thread, asleep */
#define INTERPS_NS (MS * 4)   /* ... while it runs: for new interpreters, which take longer than that to make */
#define ACTIVE_NS (MS * 40)   /* ... while its thread state is the active one: then it is in no other interpreter */

enum {
    STATUS_MS = 25,       /* how often the process' state is asked while all goes well */
    POLL_MS = 10,         /* how often the app and the process' state are asked */
    FULL_LIST_MS = 10,    /* how often the lists are walked whole */
    LIST_LATEST_MS = 200, /* ... while nobody takes the GIL who was not there */
    NAMES_MS = 4,
    LONE_NAME_MS = 32,    /* ... of one thread */
    UNBOUND_MS = 1,       /* to the next walk of the lists while a thread state has no thread */
    UNBOUND_FOR_MS = 100, /* ... which does not take longer, unless the program means it so */
    WALK_NS = 10000,      /* and a little more for each thread, so that the walks stay a part of the whole */
    ASKS = 32,            /* run states that a pass asks for in advance */
    PATIENCE = 4,         /* equal stacks in a row that make it likely that the thread sleeps */
    WINDOW_CAP = 4096,
    RUNTIME_LEAST_US = 5000, /* Py_Finalize and Py_Initialize take longer */
    LOST_MS = 200            /* failing that long without a word from the system: look for the interpreter again */
};

au_error *au_engine_create(const au_engine_options *options, au_sys *sys, au_sink *sink, au_engine **out)
{
    au_engine *e = calloc(1, sizeof *e);
    if (!e) {
        return au_error_memory();
    }
    e->options = *options;
    e->sys = sys;
    e->sink = sink;
    e->remote.ops = sys->ops;
    e->remote.window_cap = options->read_cap ? options->read_cap : WINDOW_CAP;
    if (au__codes_init(&e->codes, &e->stats)) {
        free(e);
        return au_error_memory();
    }
    e->random = options->random_seed ? options->random_seed : sys->ops->now(sys) | 1;
    /* a whole runtime may end and begin again between two looks that lie this far apart, and count the same again */
    e->codes.by_content = options->interval_us >= RUNTIME_LEAST_US;
    e->torn_location = (au_location){.file = "<austin>", .scope = "<torn>"};
    e->truncated_location = (au_location){.file = "<austin>", .scope = "<truncated>"};
    *out = e;
    return NULL;
}

void au_engine_destroy(au_engine *e)
{
    if (!e) {
        return;
    }
    au__threads_clear(e);
    au__codes_deinit(&e->codes);
    free(e->interps);
    free(e->threads);
    free(e->states);
    free(e->state_owner);
    free(e->list_pieces);
    free(e->list_range);
    free(e->nameless);
    free(e->quiet_pieces);
    free(e->scratch.pieces);
    free(e->scratch.raw[0]);
    free(e->scratch.raw[1]);
    free(e->scratch.chunks);
    free(e->scratch.pending);
    free(e->scratch.frames);
    free(e->scratch.order);
    au_buf_deinit(&e->scratch.arena);
    au_buf_deinit(&e->list_arena);
    au_buf_deinit(&e->quiet_arena);
    au_buf_deinit(&e->text);
    free(e->image_label);
    free(e->other_label);
    free(e);
}

void au_engine_stop(au_engine *e)
{
    e->stop = 1;
    e->remote.ops->wake(e->sys);
}

void au_engine_set_poll(au_engine *e, au_poll_fn poll, void *baton)
{
    e->poll = poll;
    e->poll_baton = baton;
}

void au_engine_set_found(au_engine *e, au_found_fn found, void *baton)
{
    e->found = found;
    e->found_baton = baton;
}

void au_engine_set_elsewhere(au_engine *e, au_elsewhere_fn elsewhere, void *baton)
{
    e->elsewhere = elsewhere;
    e->elsewhere_baton = baton;
}

const au_stats *au_engine_stats(const au_engine *e)
{
    return &e->stats;
}

/* Asks the app, at most every POLL_MS. Non-zero: stop. */
static int stopped(au_engine *e, uint64_t now)
{
    if (e->poll && now >= e->poll_due_ns) {
        e->poll_due_ns = now + POLL_MS * MS;
        if (e->poll(e->poll_baton)) {
            e->stop = 1;
        }
    }
    return e->stop;
}

/* ---- finding --------------------------------------------------------------------------------------------------- */

static au_error *find(au_engine *e, au_proc *proc, au_elsewhere_fn elsewhere)
{
    const au_proc_ops *ops = e->remote.ops;
    uint64_t start = ops->now(e->sys);
    uint64_t pause = MS / 2;
    unsigned attempt = 0;
    e->counter_tries = e->counter_at = 0;
    e->counter_code = 0;
    for (;;) {
        au_proc_status status;
        uint64_t now = ops->now(e->sys);
        if (stopped(e, now)) {
            return au_error_gone();
        }
        if (ops->status(proc, &status) != AU_OK || status.state == AU_EXITED) {
            return au_error_create(AU_ERR_GONE, 0, "Process %lld ended before a Python interpreter was found in it",
                                   (long long)proc->pid);
        }
        /* What is found at all is mostly found at once, or a moment after the launch; the rest takes its time. */
        uint64_t patience = e->options.timeout_ms * MS / 8;
        int last = now - start >= e->options.timeout_ms * MS;
        int thorough = last || (now - start >= (patience < 200 * MS ? patience : 200 * MS) && attempt++ % 4 == 0);
        au_error *error = au__find_once(e, proc, thorough);
        if (!error) {
            e->generation = status.generation;
            return NULL;
        }
        au_proc *other = elsewhere && !e->hopeless ? elsewhere(e->elsewhere_baton, proc) : NULL;
        if (other) {
            au_error_clear(error);
            proc = e->remote.proc = other;
            continue;
        }
        now = ops->now(e->sys);
        if (e->hopeless || error->code == AU_ERR_MEMORY || error->code == AU_ERR_PERMISSION || last) {
            return error;
        }
        au_error_clear(error);
        pause = pause < 20 * MS ? pause * 3 / 2 : 20 * MS;
        ops->sleep_until(e->sys, now + pause);
    }
}

au_error *au_engine_find(au_engine *e, au_proc *proc, const au_python **python)
{
    au__threads_clear(e);
    e->remote.proc = proc;
    au_error *error = find(e, proc, e->elsewhere);
    if (!error) {
        *python = &e->python;
    }
    return error;
}

static int refuse(au_sink *sink, const au_sample *sample)
{
    (void)sink, (void)sample;
    return 1;
}

int au_engine_is_python(au_sys *sys, au_proc *proc)
{
    const au_engine_options options = {.interval_us = 1};
    au_sink nobody = {.sample = refuse};
    au_engine *e = NULL;
    au_error *error = au_engine_create(&options, sys, &nobody, &e);
    if (!error) {
        error = au__find_once(e, proc, 0);
        au_engine_destroy(e);
    }
    int found = error == NULL;
    au_error_clear(error);
    return found;
}

/* ---- who runs -------------------------------------------------------------------------------------------------- */

/* A look at the switch count is due now and then of a thread whose stack stands to the instruction. */
static int asks_state(const au_thread_rec *rec)
{
    return rec->still >= PATIENCE && rec->still % PATIENCE == 0;
}

/*
 * Up to 3.12 the first thread state of a sub-interpreter names the thread that made it, and any other may run it
 * (Modules/_xxsubinterpretersmodule.c, _run_script_in_interpreter): what the named one does says nothing of its stack.
 */
static int may_be_lent(const au_engine *e, const au_thread_rec *rec)
{
    return rec->iid != 0 && e->remote.layout.minor <= 12;
}

/*
 * Run states of all threads in one call, or two: a thread that was asleep when its stack was read, and has not been
 * switched in since, costs its switch count only, and then its stack is what it was.
 */
static int ask_states(au_engine *e)
{
    const au_proc_ops *ops = e->remote.ops;
    int exact = (ops->caps & AU_CAP_SWITCHES) != 0;
    const unsigned whole = AU_STATE_SWITCHES | AU_STATE_RUN | au__cpu_wanted(e);
    size_t n = 0;
    if (!(ops->caps & AU_CAP_THREAD_STATES) || (e->options.mode == AU_MODE_WALL && !exact)) {
        return 0; /* what wall mode wants to know is who has not run: a state alone does not prove that */
    }
    e->asks = ASKS;
    size_t cap = e->states_cap;
    if (au__grow(&e->states, &cap, e->thread_count, sizeof *e->states, &e->stats) ||
        au__grow(&e->state_owner, &e->states_cap, e->thread_count, sizeof *e->state_owner, &e->stats)) {
        return -1;
    }
    for (size_t i = 0; i < e->thread_count; i++) {
        au_thread_rec *rec = e->threads[i];
        if (!rec->tid) {
            continue;
        }
        if (e->options.mode == AU_MODE_WALL && may_be_lent(e, rec)) {
            rec->state.run = AU_RUN_UNKNOWN;
            rec->asked = 1;
            continue;
        }
        if (e->options.mode == AU_MODE_WALL && rec->asked &&
            (rec->unchanged ? rec->proven_asleep || !e->asks || !e->asks-- : !rec->proven_asleep && !asks_state(rec))) {
            rec->state.run = AU_RUN_UNKNOWN;
            /* known to stand, also for later; or it moves, so that its stack is read whatever the answer is */
            continue;
        }
        rec->asked = rec->unchanged || rec->still >= PATIENCE ? 2 : 1;
        e->states[n] = rec->state;
        e->states[n].wanted = exact && rec->proven_asleep ? AU_STATE_SWITCHES : whole;
        e->state_owner[n++] = (uint32_t)i;
    }
    ops->thread_states(e->remote.proc, e->states, n);
    size_t again = 0;
    for (size_t k = 0; k < n; k++) {
        au_thread_rec *rec = e->threads[e->state_owner[k]];
        au_thread_state *state = &e->states[k];
        int only_count = state->wanted == AU_STATE_SWITCHES;
        if (state->outcome != AU_OK) {
            rec->proven_asleep = 0;
            rec->state = *state;
            rec->state.run = AU_RUN_UNKNOWN;
            if (state->outcome == AU_GONE) {
                rec->state.run = AU_RUN_GONE;
                e->list_due_ns = 0; /* the list has changed */
            }
            continue;
        }
        if (only_count && state->switches == rec->state.switches) {
            rec->state.slot = state->slot;
            continue; /* as before: asleep, stack unchanged */
        }
        rec->proven_asleep = 0;
        rec->state = *state;
        if (only_count) {
            e->states[again] = *state;
            e->states[again].wanted = whole;
            e->state_owner[again++] = e->state_owner[k];
        }
    }
    if (again) {
        ops->thread_states(e->remote.proc, e->states, again);
        for (size_t k = 0; k < again; k++) {
            au_thread_rec *rec = e->threads[e->state_owner[k]];
            rec->state = e->states[k];
            if (rec->state.outcome != AU_OK) {
                rec->state.run = AU_RUN_UNKNOWN;
            }
        }
    }
    return 0;
}

/* Several thread states of one OS thread: which of them is it in? */
static int is_active(au_engine *e, const au_thread_rec *rec)
{
    const au_layout *l = &e->remote.layout;
    uint32_t word = 0;
    uint32_t at = au__active_at(l);
    if (at != AU_ABSENT) {
        return au__read_u32(&e->remote, rec->addr + at, &word) == AU_OK && au__says_active(l, word);
    }
    au_addr current;
    return l->runtime_tstate_current != AU_ABSENT &&
           au__read_u64(&e->remote, e->runtime + l->runtime_tstate_current, &current) == AU_OK && current == rec->addr;
}

/* In CPU mode, is this the thread state to write? If none of those that share a thread is active, the newest. */
static int runs_here(au_engine *e, size_t index)
{
    const au_thread_rec *rec = e->threads[index];
    if (!rec->shares_tid || is_active(e, rec)) {
        return 1;
    }
    for (size_t i = 0; i < e->thread_count; i++) {
        const au_thread_rec *other = e->threads[i];
        if (other != rec && other->ident == rec->ident && other->native == rec->native &&
            (is_active(e, other) || i < index)) {
            return 0;
        }
    }
    return 1;
}

/* ---- one sample ------------------------------------------------------------------------------------------------- */

typedef enum given { GIVEN, REFUSED, NO_MEMORY } given;

/* What the sink gets of a stack: its locations, and the marks of what is missing. */
static int show(au_engine *e, au_stack *stack)
{
    size_t n = 0;
    if (au__grow(&stack->shown, &stack->shown_cap, stack->count + 2, sizeof *stack->shown, &e->stats)) {
        return -1;
    }
    if (stack->flags & AU_SAMPLE_TRUNCATED) {
        stack->shown[n++] = &e->truncated_location;
    }
    for (size_t i = 0; i < stack->count; i++) {
        stack->shown[n++] = stack->frames[i].location;
    }
    if (stack->flags & AU_SAMPLE_TORN) {
        stack->shown[n++] = &e->torn_location;
    }
    stack->shown_count = n;
    return 0;
}

static given give(au_engine *e, au_thread_rec *rec, uint64_t time_us)
{
    au_stack *stack = &rec->stack;
    if (!stack->count && !stack->flags && !rec->tid && !rec->native && !rec->ident) {
        return GIVEN; /* made for a thread that has not begun */
    }
    if (!stack->shown_count && show(e, stack)) {
        return NO_MEMORY;
    }
    e->stats.truncated += (stack->flags & AU_SAMPLE_TRUNCATED) != 0;
    e->stats.torn += (stack->flags & AU_SAMPLE_TORN) != 0;
    e->stats.errors += stack->flags != 0;
    e->stats.samples++;
    size_t length;
    const char *label = au__thread_label(rec, &length);
    au_sample sample = {
        .pid = e->remote.proc->pid,
        .iid = rec->iid,
        .thread = label,
        .thread_length = length,
        .state_id = rec->state_id,
        .flags = stack->flags | (rec->stack_taken ? AU_SAMPLE_SAME : 0u),
        .time_us = time_us,
        .frames = stack->shown,
        .frame_count = stack->shown_count,
    };
    int refused = e->sink->sample(e->sink, &sample);
    rec->stack_taken = 1;
    return refused ? REFUSED : GIVEN;
}

static given sample_thread(au_engine *e, size_t index, uint64_t time_us)
{
    au_thread_rec *rec = e->threads[index];
    int on_cpu = rec->state.run == AU_RUN_RUNNING;
    if (rec->state.run == AU_RUN_GONE && rec->iid == 0) {
        /* Its OS thread has ended: about to be unlinked, or (in a fork that has not tidied up yet) never there. Not
           so in sub-interpreters, whose first state keeps the id of their creator up to 3.12. */
        return GIVEN;
    }
    if (rec->unchanged) {
        /* asked in this pass, in advance: should the GIL change hands, the switch count tells that it has not run */
        rec->proven_asleep |= rec->state.run == AU_RUN_ASLEEP && (e->remote.ops->caps & AU_CAP_SWITCHES) != 0;
        return give(e, rec, time_us);
    }
    if (rec->proven_asleep) {
        if (e->options.mode == AU_MODE_WALL) {
            const au_interp_rec *interp = au__interp_of(e, rec);
            if (interp) {
                au__quiet_prove(rec,
                                interp); /* it had not run when it was asked, which was after the look at the GIL */
            }
        }
        return e->options.mode == AU_MODE_CPU ? GIVEN : give(e, rec, time_us);
    }
    if (e->options.mode == AU_MODE_CPU && !on_cpu && !au__cpu_owes(e, rec, time_us)) {
        /* while it is asleep its stack is not asked for, and until it wakes only its switch count is */
        rec->proven_asleep = rec->state.run == AU_RUN_ASLEEP && (e->remote.ops->caps & AU_CAP_SWITCHES) != 0;
        return GIVEN;
    }
    if (e->options.mode == AU_MODE_CPU && (!runs_here(e, index) || (on_cpu && !au__cpu_covers(e, rec, time_us)))) {
        return GIVEN;
    }
    au_interp_rec *interp = au__interp_of(e, rec);
    int same = 0;
    if (!interp) {
        return GIVEN;
    }
    au_walk walk = au__stack_read(e, interp, rec, &same);
    if (walk == AU_WALK_MEMORY) {
        return NO_MEMORY;
    }
    if (e->heads_outcome != AU_OK) {
        return GIVEN; /* the lists cannot be read any more: what this is of is not known */
    }
    if (walk == AU_WALK_LOST) {
        e->list_due_ns = 0; /* the thread state has gone or is another one: the lists know */
        e->stats.unreadable += rec->state.run != AU_RUN_GONE;
        return GIVEN;
    }
    rec->stack_taken = rec->stack_taken && same;
    if (walk == AU_WALK_OK) {
        au__quiet_prove(rec, interp);
    } else {
        rec->gil_proof = 0;
    }
    /* read after it was found asleep: as long as it is not switched in, this is its stack */
    rec->proven_asleep = walk == AU_WALK_OK && rec->state.run == AU_RUN_ASLEEP &&
                         (e->remote.ops->caps & AU_CAP_SWITCHES) != 0 &&
                         (e->options.mode != AU_MODE_WALL || rec->asked == 2);
    if (e->options.mode == AU_MODE_CPU) {
        au__cpu_written(e, rec, time_us);
    }
    return give(e, rec, time_us);
}

/* ---- the run ---------------------------------------------------------------------------------------------------- */

uint64_t au__random(au_engine *e)
{
    /* xorshift64*: G. Marsaglia, "Xorshift RNGs", J. Stat. Soft. 8 (2003); multiplier by S. Vigna */
    e->random ^= e->random >> 12;
    e->random ^= e->random << 25;
    e->random ^= e->random >> 27;
    return e->random * UINT64_C(2685821657736338717);
}

/*
 * The gap to the next pass: uniform between half and one and a half intervals. A width of a whole interval makes the
 * phase against a target that repeats itself every interval uniform from one pass to the next.
 */
static uint64_t next_gap(au_engine *e)
{
    uint64_t interval = e->options.interval_us * 1000;
    return interval / 2 + au__random(e) % (interval + 1);
}

typedef enum passed { PASS_OK, PASS_FAILED, PASS_GONE, PASS_SINK, PASS_MEMORY } passed;

typedef struct run {
    uint64_t names_due_ns;
    uint64_t last_us;
    uint64_t failing_since;
} run;

/* A thread state is made before its thread, which enters its id when it begins: without one it cannot be on a CPU. */
static int any_unbound(const au_engine *e)
{
    for (size_t i = 0; i < e->thread_count; i++) {
        if (!e->threads[i]->native && !e->threads[i]->tid && e->remote.layout.tstate_native_thread_id != AU_ABSENT) {
            return 1;
        }
    }
    return 0;
}

/* The lists, whole or by their heads; names and ids of who is new. */
static passed update_lists(au_engine *e, int full, uint64_t now)
{
    uint64_t before = e->stats.threads_seen;
    au_outcome outcome = au__threads_update(e, full);
    if (outcome != AU_OK || !e->thread_count) {
        return outcome == AU_GONE ? PASS_GONE : PASS_FAILED;
    }
    if (full) {
        e->list_due_ns = now + FULL_LIST_MS * MS;
        e->list_latest_ns = now + LIST_LATEST_MS * MS;
        /* of one thread alone, its own links tell of others, and the heads of new interpreters */
        e->switched = e->thread_count == 1 ? e->interp_count > 1 : !e->remote.layout.gil_tells;
        e->switched |= e->options.mode != AU_MODE_WALL; /* where nobody looks at the GIL */
        e->born_ns = e->stats.threads_seen != before ? now : e->born_ns;
        if (now - e->born_ns < UNBOUND_FOR_MS * MS && any_unbound(e)) {
            e->switched = 1;
            e->list_due_ns = now + UNBOUND_MS * MS + e->thread_count * WALK_NS;
        }
    }
    if (e->stats.threads_seen != before) {
        au__names_update(e, 1, now);
    }
    return PASS_OK;
}

/* Samples whom this pass has not looked at yet. */
static passed sample_all(au_engine *e, uint64_t time_us)
{
    uint64_t number = e->stats.passes + 1;
    for (size_t i = 0; i < e->thread_count; i++) {
        if (i + 2 < e->thread_count) { /* of thousands none is still in the cache */
            __builtin_prefetch(e->threads[i + 2]);
            __builtin_prefetch(&e->threads[i + 2]->stack);
        }
        if (e->threads[i]->looked_pass == number) {
            continue;
        }
        e->threads[i]->looked_pass = number;
        switch (sample_thread(e, i, time_us)) {
        case GIVEN:
            break;
        case REFUSED:
            return PASS_SINK;
        case NO_MEMORY:
            return PASS_MEMORY;
        }
    }
    return PASS_OK;
}

/* When the list of interpreters is to be looked at again while there is one thread, seldom while its stack stands. */
static uint64_t interps_due(const au_engine *e)
{
    return e->interps_next_ns + (e->lone_active && e->again.rec ? ACTIVE_NS - INTERPS_NS : 0);
}

static uint64_t names_due(const au_engine *e, uint64_t now)
{
    int lone = e->thread_count == 1 && e->threads[0]->tid;
    return now + (lone ? LONE_NAME_MS : NAMES_MS) * MS;
}

static au_heads which_heads(au_engine *e, uint64_t now)
{
    if (e->thread_count > 1) {
        return AU_HEADS_READ;
    }
    int links = e->interp_count == 1 && now < interps_due(e);
    if (links && !e->threads[0]->proven_asleep) {
        return AU_HEADS_BY_LINKS;
    }
    if (links && now < e->heads_next_ns) {
        return AU_HEADS_NOT_DUE;
    }
    e->heads_next_ns = now + HEADS_NS;
    e->interps_next_ns = now + INTERPS_NS;
    e->lone_active = 0;
    return AU_HEADS_READ;
}

static passed pass_is_over(au_engine *e, run *r, uint64_t now, uint64_t time_us, passed result)
{
    r->last_us = now / 1000;
    e->stats.passes++;
    e->stats.last_ns = now;
    e->stats.duration_us += time_us;
    return e->sink->pass && e->sink->pass(e->sink, time_us) ? PASS_SINK : result;
}

/* Nothing is due but the one stack, and that stands. */
static int goes_on(au_engine *e, const run *r, uint64_t now)
{
    au_thread_rec *rec = e->again.rec;
    int same = 0;
    e->again.served = 0;
    if (!rec || !e->list_due_ns || now >= (e->switched ? e->list_due_ns : e->list_latest_ns) ||
        now >= r->names_due_ns || now >= interps_due(e) || rec->proven_asleep || rec->state.run != AU_RUN_UNKNOWN ||
        !rec->asked || asks_state(rec) || !au__again_stands(e, &same)) {
        return 0;
    }
    rec->stack_taken = rec->stack_taken && same;
    return 1;
}

static passed pass(au_engine *e, run *r, uint64_t now)
{
    uint64_t time_us = now / 1000 - r->last_us;
    if (goes_on(e, r, now)) {
        switch (give(e, e->again.rec, time_us)) {
        case GIVEN:
            return pass_is_over(e, r, now, time_us, PASS_OK);
        case REFUSED:
            return PASS_SINK;
        case NO_MEMORY:
            return PASS_MEMORY;
        }
    }
    uint64_t given_before = e->stats.samples;
    int full = now >= e->list_due_ns && (e->switched || !e->list_due_ns || now >= e->list_latest_ns);
    /* in wall mode the look at the heads of the lists rides with the first stack */
    int look = full || !e->thread_count || e->options.mode != AU_MODE_WALL;
    passed result = look ? update_lists(e, full, now) : PASS_OK;
    if (result != PASS_OK) {
        return result;
    }
    if (now >= r->names_due_ns) {
        au__names_update(e, 0, now);
        r->names_due_ns = names_due(e, now);
    }
    e->heads_due = look ? AU_HEADS_NOT_DUE : which_heads(e, now);
    e->heads_outcome = AU_OK;
    if (e->options.mode == AU_MODE_WALL && au__quiet_look(e)) {
        return PASS_MEMORY;
    }
    if (e->heads_due && (e->thread_count > 1 || e->threads[0]->proven_asleep)) {
        e->heads_due = AU_HEADS_NOT_DUE; /* a look of its own, before anything is shown */
        result = update_lists(e, 0, now);
    } else if (e->heads_outcome != AU_OK) {
        result = e->heads_outcome == AU_GONE ? PASS_GONE : PASS_FAILED;
    } else if (!e->heads_due && !look && e->list_due_ns == 0) {
        result = update_lists(e, 1, now);
    }
    if (result != PASS_OK) {
        return result;
    }
    if (ask_states(e)) {
        return PASS_MEMORY;
    }
    int rides = e->heads_due != AU_HEADS_NOT_DUE; /* with the stack of the only thread */
    result = sample_all(e, time_us);
    if (result == PASS_OK && rides) {
        if (e->heads_due || (e->list_due_ns == 0 && e->heads_outcome == AU_OK)) {
            e->heads_due = AU_HEADS_NOT_DUE;
            result = update_lists(e, e->list_due_ns == 0, now);
            result = result == PASS_OK ? sample_all(e, time_us) : result;
        } else if (e->heads_outcome != AU_OK) {
            result = e->heads_outcome == AU_GONE ? PASS_GONE : PASS_FAILED;
        }
    }
    if (result != PASS_OK && (result != PASS_FAILED || e->stats.samples == given_before)) {
        return result; /* its time goes to the next pass */
    }
    return pass_is_over(e, r, now, time_us, result);
}

static void count_pass(au_engine *e, uint64_t spent_ns)
{
    uint64_t us = spent_ns / 1000;
    if (e->stats.passes == 1 || us < e->stats.pass_min_us) {
        e->stats.pass_min_us = us;
    }
    if (us > e->stats.pass_max_us) {
        e->stats.pass_max_us = us;
    }
    e->stats.pass_sum_us += us;
}

/* The process has become another program, or its interpreter is no longer where it was. */
static au_error *again(au_engine *e, int *gone)
{
    au__threads_clear(e);
    e->stats.rediscoveries++;
    au_error *error = find(e, e->remote.proc, NULL);
    *gone = 0;
    if (error && error->code != AU_ERR_MEMORY) {
        au_error_clear(error);
        error = NULL;
        *gone = 1;
    } else if (!error && e->found) {
        e->found(e->found_baton, &e->python);
    }
    return error;
}

static int time_is_over(const au_engine *e, uint64_t now)
{
    return (e->options.exposure_ns && now - e->stats.start_ns >= e->options.exposure_ns) ||
           (e->options.max_passes && e->stats.passes >= e->options.max_passes);
}

/* Sleeps until `due`, or until there is something else to do: the app's poll, or the end of the exposure. */
static uint64_t sleep_until(au_engine *e, uint64_t now, uint64_t due)
{
    uint64_t until = due;
    if (e->options.exposure_ns && e->stats.start_ns + e->options.exposure_ns < until) {
        until = e->stats.start_ns + e->options.exposure_ns;
    }
    uint64_t slice = now + POLL_MS * MS;
    if (slice < until) {
        until = slice;
    }
    e->slept = 1;
    return e->remote.ops->sleep_until(e->sys, until);
}

au_error *au_engine_run(au_engine *e, au_ran *how)
{
    const au_proc_ops *ops = e->remote.ops;
    run r = {0};
    uint64_t now = ops->now(e->sys);
    uint64_t due = now;
    uint64_t status_due = now;
    e->stats.start_ns = e->stats.last_ns = now;
    r.last_us = now / 1000;
    *how = AU_RAN_STOPPED;
    for (;;) {
        if (stopped(e, now)) {
            *how = AU_RAN_STOPPED;
            return NULL;
        }
        if (time_is_over(e, now)) {
            *how = AU_RAN_EXPOSURE;
            return NULL;
        }
        if (now < due && e->options.interval_us) { /* woken for something else */
            au_proc_status status;
            if (now >= status_due) {
                status_due = now + POLL_MS * MS;
                if (ops->status(e->remote.proc, &status) != AU_OK || status.state == AU_EXITED) {
                    *how = AU_RAN_TARGET_GONE;
                    return NULL;
                }
            }
            now = sleep_until(e, now, due);
            continue;
        }
        passed result = pass(e, &r, now);
        uint64_t end = ops->now(e->sys);
        if (result == PASS_SINK) {
            *how = AU_RAN_SINK;
            return NULL;
        }
        if (result == PASS_MEMORY) {
            return au_error_memory();
        }
        if (result == PASS_OK) {
            count_pass(e, end - now);
            r.failing_since = 0;
        } else if (!r.failing_since) {
            r.failing_since = end;
        }
        if (result != PASS_OK || end >= status_due) {
            au_proc_status status;
            au_outcome outcome = ops->status(e->remote.proc, &status);
            status_due = end + STATUS_MS * MS;
            if (outcome != AU_OK || status.state == AU_EXITED) {
                *how = AU_RAN_TARGET_GONE;
                return NULL;
            }
            if (status.generation != e->generation || (r.failing_since && end - r.failing_since > LOST_MS * MS)) {
                int gone;
                au_error *error = again(e, &gone);
                if (error || gone) {
                    *how = e->stop ? AU_RAN_STOPPED : AU_RAN_TARGET_GONE;
                    return error;
                }
                r.failing_since = 0;
                end = ops->now(e->sys);
                due = end;
            }
        }
        if (!e->options.interval_us) {
            now = end;
            if (result != PASS_OK) { /* nothing to see: do not spin while it ends */
                now = ops->sleep_until(e->sys, end + MS);
            }
            continue;
        }
        due += next_gap(e);
        if (due <= end) { /* late: counted, and not made up for */
            e->stats.late += result == PASS_OK;
            due = end;
            now = end;
            continue;
        }
        now = sleep_until(e, end, due);
    }
}
