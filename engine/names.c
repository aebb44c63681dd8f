/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Names and OS ids of threads.
 *
 * sys.modules -> threading -> _active, a dict {ident: Thread} -> Thread._name (Lib/threading.py). It all lives in
 * dicts that change under our eyes, so every look-up may fail and is repeated later: a thread without a name soon and
 * then ever more rarely, one with a name often enough that a rename is seen within a second.
 */
#include <stdio.h>
#include <stdlib.h>

#include "engine/internal.h"

#define MS UINT64_C(1000000)

enum {
    RENAME_MS = 600,
    MISSING_MS = 500,
    REFRESH_AT_ONCE = 32,
    WAIT_MS = 20,
    SLICES = 16,
    SLICE_LEAST = 64,
    NAMELESS_MS = 2
};

const char *au__thread_label(const au_thread_rec *rec, size_t *length)
{
    *length = rec->name ? rec->name_length : rec->hex_length;
    return rec->name ? rec->name : rec->hex;
}

static void set_hex(au_thread_rec *rec)
{
    uint64_t id = rec->tid ? (uint64_t)rec->tid : rec->native ? rec->native : rec->ident;
    rec->hex_length = (size_t)snprintf(rec->hex, sizeof rec->hex, "%llx", (unsigned long long)id);
}

/* The OS thread behind a thread state. Tried a few times: it may not be bound yet. */
static void find_tid(au_engine *e, au_thread_rec *rec, uint64_t now)
{
    const au_remote *r = &e->remote;
    au_tid tid;
    if (rec->tid || now < rec->tid_due_ns || !(r->ops->caps & AU_CAP_THREAD_ID_OF)) {
        return;
    }
    rec->tid_due_ns = now + (rec->tid_tries < 8 ? MS << rec->tid_tries : MISSING_MS * MS);
    rec->tid_tries++;
    au_outcome outcome = AU_NOT_KNOWN;
    if (rec->native) {
        outcome = r->ops->thread_id_of(r->proc, AU_ID_NAMESPACED, rec->native, &tid);
    } else if (rec->ident) {
        outcome = r->ops->thread_id_of(r->proc, AU_ID_PTHREAD, rec->ident, &tid);
        au_addr value;
        uint64_t native;
        if (outcome != AU_OK && rec->thread_object &&
            au__instance_get(r, rec->thread_object, "_native_id", NULL, &value) == AU_OK &&
            au__read_int(r, value, &native) == AU_OK) {
            outcome = r->ops->thread_id_of(r->proc, AU_ID_NAMESPACED, native, &tid);
        }
    }
    if (outcome == AU_OK) {
        rec->tid = tid;
        rec->state.tid = tid;
        set_hex(rec);
    }
}

/* Finds threading._active of an interpreter. 0: threading is not imported there (or cannot be read now). */
static au_addr active_of(au_engine *e, const au_interp_rec *interp)
{
    const au_remote *r = &e->remote;
    au_addr modules;
    au_addr module;
    au_addr dict;
    au_addr active;
    if (au__read_u64(r, interp->addr + r->layout.interp_modules, &modules) != AU_OK || !au__plausible(modules) ||
        au__pydict_get(r, modules, "threading", &module) != AU_OK ||
        au__read_u64(r, module + r->layout.module_dict, &dict) != AU_OK ||
        au__pydict_get(r, dict, "_active", &active) != AU_OK) {
        return 0;
    }
    return active;
}

static void set_name(au_engine *e, au_thread_rec *rec, const char *text, size_t len)
{
    if (rec->name && rec->name_length == len && memcmp(rec->name, text, len) == 0) {
        return;
    }
    char *name = malloc(len + 1);
    if (!name) {
        return;
    }
    memcpy(name, text, len);
    name[len] = '\0';
    free(rec->name);
    rec->name = name;
    rec->name_length = len;
    (void)e;
}

/* The name that the Thread object has now. */
static int read_name(au_engine *e, au_thread_rec *rec)
{
    au_addr value;
    au_path *path = &rec->name_path;
    e->text.len = 0;
    if (au__instance_get(&e->remote, rec->thread_object, "_name", path, &value) != AU_OK ||
        path->count == AU_PATH_MAX || au__read_text(&e->remote, value, &e->text) != AU_OK) {
        return 0;
    }
    path->at[path->count] = value + e->remote.layout.str_length;
    path->count += au__read_u64(&e->remote, path->at[path->count], &path->was[path->count]) == AU_OK;
    set_name(e, rec, e->text.len ? (const char *)e->text.data : "", e->text.len);
    return 1;
}

/* The entries of threading._active, collected so that all keys are read in one batch. */
typedef struct actives {
    au_buf pairs; /* key and value, 16 bytes each */
    int memory;
} actives;

static au_next collect_active(void *baton, au_addr key, au_addr value)
{
    actives *a = baton;
    au_addr pair[2] = {key, value};
    if (!au__plausible(key) || au_buf_append(&a->pairs, pair, sizeof pair)) {
        a->memory = 1;
        return AU_NEXT_STOP;
    }
    return AU_NEXT_GO;
}

static int by_ident(const void *a, const void *b)
{
    uint64_t x = (*(au_thread_rec *const *)a)->ident;
    uint64_t y = (*(au_thread_rec *const *)b)->ident;
    return (x > y) - (x < y);
}

/* The threads of `interp` (0: of any) that have no name yet, by their ident, into e->nameless. How many. */
static size_t find_nameless(au_engine *e, au_addr interp)
{
    size_t count = 0;
    if (au__grow(&e->nameless, &e->nameless_cap, e->thread_count, sizeof(au_thread_rec *), &e->stats)) {
        return 0;
    }
    for (size_t i = 0; i < e->thread_count; i++) {
        au_thread_rec *rec = e->threads[i];
        if (!rec->thread_object && (!interp || rec->interp == interp)) {
            e->nameless[count++] = rec;
        }
    }
    qsort(e->nameless, count, sizeof *e->nameless, by_ident);
    return count;
}

/* The first of them with that ident or a higher one. */
static size_t nameless_from(const au_engine *e, size_t count, uint64_t ident)
{
    size_t low = 0;
    for (size_t high = count; low < high;) {
        size_t middle = low + (high - low) / 2;
        if (e->nameless[middle]->ident < ident) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Gives their names to the nameless threads of `interp` (0: of any) that the dict `active` knows. */
static void name_from(au_engine *e, au_addr active, au_addr interp, uint64_t now)
{
    enum { AT_ONCE = 128, INT_MAX_BYTES = 64 };
    const au_layout *l = &e->remote.layout;
    uint32_t len = l->int_digits + 8;
    uint8_t copies[AT_ONCE][INT_MAX_BYTES];
    au_piece pieces[AT_ONCE];
    actives a = {{0}, 0};
    size_t nameless = find_nameless(e, interp);
    if (!nameless || len > INT_MAX_BYTES || au__pydict_each(&e->remote, active, collect_active, &a) != AU_OK) {
        au_buf_deinit(&a.pairs);
        return;
    }
    size_t count = a.pairs.len / 16;
    for (size_t i = 0; i < count; i += AT_ONCE) {
        size_t n = count - i < AT_ONCE ? count - i : AT_ONCE;
        for (size_t k = 0; k < n; k++) {
            pieces[k] = (au_piece){au__u64(a.pairs.data + (i + k) * 16), copies[k], len, 0};
        }
        e->remote.ops->read_many(e->remote.proc, pieces, n);
        for (size_t k = 0; k < n; k++) {
            uint64_t ident;
            if (pieces[k].outcome != AU_OK || au__int_value(l, copies[k], &ident) != AU_OK) {
                continue;
            }
            for (size_t from = nameless_from(e, nameless, ident); from < nameless; from++) {
                au_thread_rec *rec = e->nameless[from];
                if (rec->ident != ident) {
                    break;
                }
                rec->thread_object = au__u64(a.pairs.data + (i + k) * 16 + 8);
                rec->name_due_ns = now + RENAME_MS * MS;
                if (!read_name(e, rec)) {
                    rec->thread_object = 0;
                }
            }
        }
    }
    au_buf_deinit(&a.pairs);
}

static int nameless_in(const au_engine *e, au_addr interp, uint64_t now)
{
    for (size_t i = 0; i < e->thread_count; i++) {
        const au_thread_rec *rec = e->threads[i];
        if (!rec->thread_object && rec->interp == interp && now >= rec->name_due_ns) {
            return 1;
        }
    }
    return 0;
}

static void look_up(au_engine *e, au_interp_rec *interp, uint64_t now)
{
    au_addr active = active_of(e, interp);
    if (active) {
        name_from(e, active, interp->addr, now);
    }
    if (interp->id != 0 && e->interp_count) { /* an OS thread that runs in a sub-interpreter is known to the main one */
        au_addr main_active = active_of(e, &e->interps[e->interp_count - 1]);
        if (main_active) {
            name_from(e, main_active, 0, now);
        }
    }
    for (size_t i = 0; i < e->thread_count; i++) {
        au_thread_rec *rec = e->threads[i];
        if (rec->interp != interp->addr || rec->thread_object) {
            continue;
        }
        if (rec->is_main && !active) {
            set_name(e, rec, "MainThread", 10);
        }
        rec->name_due_ns = now + (rec->name_tries < 9 ? MS << rec->name_tries : MISSING_MS * MS);
        rec->name_tries++;
    }
    uint64_t cost = e->remote.ops->now(e->sys) - now;
    /* never more than a tenth of the time, and never so late that a thread lives and dies without its name */
    interp->names_due_ns = now + (10 * cost < WAIT_MS * MS ? 10 * cost : WAIT_MS * MS);
}

static void read_again(au_engine *e, au_thread_rec *rec)
{
    if (!read_name(e, rec)) {
        rec->thread_object = 0;
        rec->name_tries = 0;
    }
}

/* Has any of these been renamed? The words that led to their names are looked at in one batch. */
static void compare_names(au_engine *e, au_thread_rec **due, size_t count)
{
    uint64_t words[REFRESH_AT_ONCE * AU_PATH_MAX];
    au_piece pieces[REFRESH_AT_ONCE * AU_PATH_MAX];
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < due[i]->name_path.count; k++, n++) {
            pieces[n] = (au_piece){due[i]->name_path.at[k], &words[n], 8, 0};
        }
    }
    e->remote.ops->read_many(e->remote.proc, pieces, n);
    n = 0;
    for (size_t i = 0; i < count; i++) {
        int same = due[i]->name_path.count != 0;
        for (uint32_t k = 0; k < due[i]->name_path.count; k++, n++) {
            same = same && pieces[n].outcome == AU_OK && words[n] == due[i]->name_path.was[k];
        }
        if (!same) {
            read_again(e, due[i]);
        }
    }
}

/* Threads from place `from` on, round the corner: who is due. */
static void refresh(au_engine *e, size_t from, size_t slice, uint64_t now)
{
    au_thread_rec *due[REFRESH_AT_ONCE];
    size_t count = 0;
    for (size_t k = 0; k < slice && count < REFRESH_AT_ONCE; k++) {
        au_thread_rec *rec = e->threads[(from + k) % e->thread_count];
        if (!rec->hex[0]) {
            set_hex(rec);
        }
        if (!rec->tid) {
            find_tid(e, rec, now);
        }
        if (rec->thread_object && now >= rec->name_due_ns) {
            /* spread, so that thousands of threads are not due in the same pass */
            rec->name_due_ns = now + (RENAME_MS + rec->state_id % 64) * MS;
            due[count++] = rec;
        }
    }
    if (count) {
        compare_names(e, due, count);
    }
}

void au__names_update(au_engine *e, int all, uint64_t now)
{
    size_t slice = e->thread_count / SLICES > SLICE_LEAST ? e->thread_count / SLICES : SLICE_LEAST;
    slice = all || slice > e->thread_count ? e->thread_count : slice;
    for (size_t i = 0; i < e->interp_count; i++) {
        au_interp_rec *interp = &e->interps[i];
        if (now >= interp->names_due_ns && (all || now >= interp->nameless_due_ns)) {
            interp->nameless_due_ns = now + NAMELESS_MS * MS;
            if (nameless_in(e, interp->addr, now)) {
                look_up(e, interp, now);
            }
        }
    }
    for (size_t i = 0; all && i < e->thread_count; i++) {
        if (!e->threads[i]->hex[0]) {
            set_hex(e->threads[i]);
        }
    }
    if (e->thread_count) {
        e->names_from %= e->thread_count;
        refresh(e, e->names_from, slice, now);
        e->names_from += slice;
    }
}
