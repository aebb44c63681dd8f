/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Finds `_PyRuntime` in a tracee and the layout of its Python.
 *
 * In this order: the section `.PyRuntime` of every loaded image (CPython puts the variable there for exactly this
 * purpose, Python/pylifecycle.c), the symbol `_PyRuntime`, and last, for 3.13 and later, a look through the writable
 * file mappings for the cookie of the debug offsets. The version comes from memory (the offsets table, the exported
 * `Py_Version` of 3.11+, sys.hexversion), never from running anything; a name only helps to refuse with a good text.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/internal.h"
#include "objfile/objfile.h"

typedef struct image {
    uint64_t id;
    au_addr base, bias;
    int is_main, bits;
    char *path;
    int asked; /* nothing more can be learnt of it */
} image;

typedef struct candidate {
    au_addr runtime;
    uint64_t size;       /* of the section; 0 if not known */
    uint64_t hexversion; /* by Py_Version; 0 if there is none */
    int named_minor;     /* by file name; -1 if it says nothing */
    int is_main;
    int long_bytes; /* of its object file; 0 if not known */
    const char *path;
} candidate;

typedef struct search {
    au_engine *e;
    au_proc *proc;
    image *images;
    size_t image_count, image_cap;
    candidate *candidates;
    size_t candidate_count, candidate_cap;
    int memory;
    int bits32;
    int python32;   /* and one of its images calls itself Python */
    int long_bytes; /* of the executable, or of the first image that could be read */
} search;

/* Where the name of a file begins: paths come as the system writes them, and not every one parts them by slashes. */
static const char *name_in(const char *path)
{
    const char *name = path;
    for (const char *at = path; *at; at++) {
        if (*at == '/' || *at == '\\') {
            name = at + 1;
        }
    }
    return name;
}

/* "python3.12", "libpython3.12.so.1.0", "Python312.dll" -> 12. */
static int minor_in_name(const char *path)
{
    static const char word[] = "python3";
    const char *at = name_in(path);
    size_t matched = 0;
    for (; *at && matched < sizeof word - 1; at++) {
        char letter = (char)tolower((unsigned char)*at);
        matched = letter == word[matched] ? matched + 1 : letter == word[0] ? 1 : 0;
    }
    if (matched < sizeof word - 1) {
        return -1;
    }
    at += *at == '.';
    if (!isdigit((unsigned char)*at)) {
        return -1;
    }
    int minor = *at++ - '0';
    if (isdigit((unsigned char)*at)) {
        minor = minor * 10 + (*at - '0');
    }
    return minor;
}

static int collect_image(void *baton, const au_module *m)
{
    search *s = baton;
    if (au__grow(&s->images, &s->image_cap, s->image_count + 1, sizeof *s->images, &s->e->stats)) {
        s->memory = 1;
        return 1;
    }
    const char *path = m->path ? m->path : "";
    size_t len = strlen(path) + 1;
    char *copy = malloc(len);
    if (!copy) {
        s->memory = 1;
        return 1;
    }
    memcpy(copy, path, len);
    s->images[s->image_count++] = (image){m->id, m->base, m->bias, m->is_main, m->bits, copy, 0};
    s->bits32 |= m->is_main && m->bits == AU_BITS_32;
    s->python32 |= m->bits == AU_BITS_32 && minor_in_name(path) >= 0;
    return 0;
}

/* ---- images ---------------------------------------------------------------------------------------------------- */

typedef struct bytes {
    const au_proc_ops *ops;
    au_proc *proc;
    uint64_t id;
} bytes;

static int read_image(void *baton, uint64_t offset, void *buf, size_t len, size_t *got)
{
    bytes *b = baton;
    au_module_source source;
    au_error *error = b->ops->module_read(b->proc, b->id, offset, buf, len, got, &source);
    if (error) {
        au_error_clear(error);
        return -1;
    }
    return 0;
}

static int add_candidate(search *s, candidate c)
{
    for (size_t i = 0; i < s->candidate_count; i++) {
        if (s->candidates[i].runtime == c.runtime) {
            return 0;
        }
    }
    if (au__grow(&s->candidates, &s->candidate_cap, s->candidate_count + 1, sizeof *s->candidates, &s->e->stats)) {
        return -1;
    }
    s->candidates[s->candidate_count++] = c;
    return 0;
}

/*
 * How an image is asked for the runtime. By symbol it may take many reads where symbols are only sorted, so that way is
 * gone with the executable and with what calls itself Python first, and with the others if all the rest brings nothing.
 */
typedef enum by_what { BY_SECTION, BY_LIKELY_SYMBOL, BY_SYMBOL } by_what;

static int minor_of(const image *im, au_obj *obj)
{
    char soname[128];
    int minor = minor_in_name(im->path);
    return minor >= 0 || au_obj_soname(obj, soname, sizeof soname) != AU_OBJ_OK ? minor : minor_in_name(soname);
}

static void look_into(search *s, image *im, by_what way)
{
    const au_proc_ops *ops = s->e->remote.ops;
    bytes b = {ops, s->proc, im->id};
    uint8_t probe[4];
    size_t got = 0;
    au_module_source from = AU_SOURCE_NONE;
    au_error *error = ops->module_read(s->proc, im->id, 0, probe, sizeof probe, &got, &from);
    if (error) {
        au_error_clear(error);
        return;
    }
    au_obj_source source = {read_image, &b, from == AU_SOURCE_MEMORY, im->base};
    au_obj obj;
    if (got < sizeof probe || au_obj_init(&obj, &source) != AU_OBJ_OK || obj.bits != 64) {
        return;
    }
    if (!s->long_bytes || im->is_main) {
        s->long_bytes = obj.long_bytes;
    }
    au_obj_range range;
    candidate c = {0, 0, 0, -1, im->is_main, obj.long_bytes, im->path};
    if (way == BY_LIKELY_SYMBOL && !im->is_main && minor_of(im, &obj) < 0) {
        return;
    }
    im->asked = way != BY_SECTION;
    if ((way == BY_SECTION ? au_obj_find_section(&obj, "PyRuntime", &range)
                           : au_obj_find_symbol(&obj, "_PyRuntime", &range)) != AU_OBJ_OK) {
        return;
    }
    im->asked = 1;
    c.named_minor = minor_of(im, &obj);
    c.runtime = range.vaddr + im->bias;
    c.size = range.size;
    if (au_obj_find_symbol(&obj, "Py_Version", &range) == AU_OBJ_OK) {
        uint32_t version;
        if (ops->read(s->proc, range.vaddr + im->bias, &version, sizeof version) == AU_OK) {
            c.hexversion = version;
        }
    }
    s->memory |= add_candidate(s, c) != 0;
}

static void look_into_all(search *s, by_what way)
{
    for (size_t i = 0; i < s->image_count; i++) {
        if (!s->images[i].asked) {
            look_into(s, &s->images[i], way);
        }
    }
}

/* ---- the cookie in memory -------------------------------------------------------------------------------------- */

enum { SCAN_STEP = 64 * 1024, SCAN_MAX = 512 << 20 };

typedef struct scan {
    search *s;
    uint8_t *buf;
    uint64_t budget;
} scan;

static int scan_region(void *baton, const au_region *region)
{
    scan *c = baton;
    unsigned need = AU_PERM_READ | AU_PERM_WRITE;
    if ((region->perms & need) != need || (region->perms & AU_PERM_SHARED) || !region->file_id) {
        return 0;
    }
    for (au_addr at = region->start; at < region->end && c->budget >= SCAN_STEP; at += SCAN_STEP) {
        size_t len = region->end - at < SCAN_STEP ? (size_t)(region->end - at) : SCAN_STEP;
        c->budget -= SCAN_STEP;
        if (c->s->e->remote.ops->read(c->s->proc, at, c->buf, len) != AU_OK) {
            continue;
        }
        for (size_t i = 0; i + 8 <= len; i += 8) {
            if (memcmp(c->buf + i, "xdebugpy", 8) == 0) {
                candidate found = {at + i, 0, 0, -1, 0, c->s->long_bytes, "(memory)"};
                c->s->memory |= add_candidate(c->s, found) != 0;
            }
        }
    }
    return c->budget < SCAN_STEP;
}

static void scan_memory(search *s)
{
    scan c = {s, malloc(SCAN_STEP), SCAN_MAX};
    if (!c.buf) {
        s->memory = 1;
        return;
    }
    au_error_clear(s->e->remote.ops->regions(s->proc, scan_region, &c));
    free(c.buf);
}

/* ---- judging a candidate --------------------------------------------------------------------------------------- */

typedef enum verdict {
    IS_RUNTIME,
    NOT_YET,     /* a runtime, but nothing runs in it */
    UNSUPPORTED, /* a Python that we do not know */
    NOT_TRUSTED  /* looks like one and fails the checks */
} verdict;

/* Reads sys.hexversion of an interpreter. */
static au_outcome live_hexversion(const au_remote *r, au_addr interp, uint64_t *hexversion)
{
    au_addr sysdict;
    au_addr value;
    au_outcome outcome = au__read_u64(r, interp + r->layout.interp_sysdict, &sysdict);
    if (outcome == AU_OK) {
        outcome = au__pydict_get(r, sysdict, "hexversion", &value);
    }
    return outcome == AU_OK ? au__read_int(r, value, hexversion) : outcome;
}

/* Is the structure at `runtime` alive, and laid out as r->layout says? */
static verdict live_checks(const au_remote *r, au_addr runtime, uint64_t *hexversion)
{
    const au_layout *l = &r->layout;
    au_addr interp;
    if (au__read_u64(r, runtime + l->runtime_interpreters_head, &interp) != AU_OK) {
        return NOT_TRUSTED;
    }
    if (!interp) {
        return NOT_YET;
    }
    au_ring links = {0};
    for (int n = 0; n < 1 << 16 && !au__ring_closes(&links, interp); n++) {
        uint64_t id;
        uint64_t next;
        uint64_t thread;
        uint64_t back;
        if (!au__plausible(interp) || au__read_u64(r, interp + l->interp_id, &id) != AU_OK ||
            au__read_u64(r, interp + l->interp_next, &next) != AU_OK ||
            au__read_u64(r, interp + l->interp_threads_head, &thread) != AU_OK) {
            return NOT_TRUSTED;
        }
        if (id != 0 && next) {
            interp = next; /* the main one, with id 0, is last */
            continue;
        }
        if (id != 0) {
            return NOT_TRUSTED;
        }
        if (!thread) {
            return NOT_YET;
        }
        if (!au__plausible(thread) || au__read_u64(r, thread + l->tstate_interp, &back) != AU_OK || back != interp) {
            return NOT_TRUSTED;
        }
        if (l->minor < 13) { /* a table that the tracee did not publish: one deep look must come out right */
            uint64_t live;
            if (live_hexversion(r, interp, &live) != AU_OK) {
                return NOT_YET;
            }
            if (live >> 24 != 3 || (live >> 16 & 0xff) != l->minor || live > UINT32_MAX) {
                return NOT_TRUSTED;
            }
            *hexversion = live;
        }
        return IS_RUNTIME;
    }
    return NOT_TRUSTED;
}

static verdict judge_as(search *s, const candidate *c, int long_bytes, au_layout *layout, uint64_t *hexversion)
{
    const au_proc_ops *ops = s->e->remote.ops;
    uint8_t head[AU_DEBUG_OFFSETS_MAX];
    size_t len = sizeof head;
    if (c->size && c->size < len) {
        len = (size_t)c->size;
    }
    if (ops->read(s->proc, c->runtime, head, len) != AU_OK) {
        len = 64;
        if (ops->read(s->proc, c->runtime, head, len) != AU_OK) {
            return NOT_TRUSTED;
        }
    }
    *hexversion = c->hexversion;
    switch (au_layout_from_debug_offsets(head, len, c->size, long_bytes, layout, hexversion)) {
    case AU_OFFSETS_OK:
        break;
    case AU_OFFSETS_UNKNOWN_VERSION:
        return UNSUPPORTED;
    case AU_OFFSETS_IMPLAUSIBLE:
        return NOT_TRUSTED;
    case AU_OFFSETS_NO_COOKIE: {
        unsigned minor = c->hexversion ? (unsigned)(c->hexversion >> 16 & 0xff) : 0;
        if (!minor && c->named_minor > 0) {
            minor = (unsigned)c->named_minor;
            *hexversion = 3u << 24 | minor << 16;
        }
        if (!minor) {
            minor = 10; /* 3.11 and later export their version; whether it is 3.10 is for the live checks */
        }
        if (minor < 10) {
            return UNSUPPORTED;
        }
        const au_layout *table = au_layout_static(minor, long_bytes);
        if (!table) {
            return minor > 15 ? UNSUPPORTED : NOT_TRUSTED;
        }
        *layout = *table;
        break;
    }
    }
    au_remote r = {ops, s->proc, *layout, s->e->remote.window_cap};
    return live_checks(&r, c->runtime, hexversion);
}

static verdict judge(search *s, const candidate *c, au_layout *layout, uint64_t *hexversion)
{
    verdict v = judge_as(s, c, c->long_bytes ? c->long_bytes : 8, layout, hexversion);
    return v == NOT_TRUSTED && !c->long_bytes ? judge_as(s, c, 4, layout, hexversion) : v;
}

/* ---- the answer ------------------------------------------------------------------------------------------------ */

static char *copy_text(const char *text)
{
    size_t len = strlen(text) + 1;
    char *copy = malloc(len);
    if (copy) {
        memcpy(copy, text, len);
    }
    return copy;
}

static void take(au_engine *e, au_proc *proc, const candidate *c, const au_layout *layout, uint64_t hexversion,
                 const candidate *other)
{
    e->remote.proc = proc;
    e->remote.layout = *layout;
    e->runtime = c->runtime;
    e->runtime_size = c->size;
    free(e->image_label);
    free(e->other_label);
    e->image_label = copy_text(c->path);
    e->other_label = other ? copy_text(other->path) : NULL;
    e->python = (au_python){
        .major = (unsigned)(hexversion >> 24 & 0xff),
        .minor = (unsigned)(hexversion >> 16 & 0xff),
        .micro = (unsigned)(hexversion >> 8 & 0xff),
        .release_level = (int)(hexversion >> 4 & 15),
        .serial = (int)(hexversion & 15),
        .micro_known = 1,
        .free_threaded = layout->free_threaded,
        .bits = 64,
        .image = e->image_label,
        .other_runtime = e->other_label,
    };
    e->main_ident = 0;
    uint8_t ident[8];
    if (au__read(&e->remote, c->runtime + layout->runtime_main_thread, ident, (size_t)layout->long_bytes) == AU_OK) {
        e->main_ident = au__ulong(layout, ident);
    }
    au__codes_reset(&e->codes, layout);
    memset(&e->links, 0, sizeof e->links);
}

static au_error *no_python(const search *s, verdict worst, const candidate *which, uint64_t hexversion)
{
    long long pid = (long long)s->proc->pid;
    unsigned minor = (unsigned)(hexversion >> 16 & 0xff);
    if (s->bits32) {
        s->e->hopeless = s->python32; /* else it may be about to start one, or to become one */
        return au_error_hint(au_error_create(AU_ERR_PYTHON, 0,
                                             "Process %lld is a 32-bit program, and only 64-bit Pythons are supported",
                                             pid),
                             "run the program with a 64-bit Python");
    }
    switch (worst) {
    case UNSUPPORTED:
        s->e->hopeless = 1;
        return au_error_hint(au_error_create(AU_ERR_PYTHON, 0, "Process %lld runs Python %u.%u, which is not supported",
                                             pid, (unsigned)(hexversion >> 24 & 0xff), minor),
                             "CPython 3.10 to 3.15 can be profiled");
    case NOT_TRUSTED:
        return au_error_hint(
            au_error_cause(
                au_error_create(AU_ERR_PYTHON, 0, "Process %lld has a Python whose structures cannot be trusted", pid),
                "%s: the runtime at 0x%llx fails the checks of Python 3.%u", which->path,
                (unsigned long long)which->runtime, minor),
            "a Python that was changed or built with other options may lie in memory in another way: use a stock build "
            "of CPython, or report this with the output of 'python -VV'");
    case NOT_YET:
        return au_error_hint(
            au_error_cause(au_error_create(AU_ERR_PYTHON, 0, "Process %lld has a Python that is not initialised", pid),
                           "%s", which->path),
            "try again when the program runs Python code, or wait longer for it, for example: -t 30s");
    default:
        return au_error_hint(au_error_create(AU_ERR_PYTHON, 0, "Process %lld is not a Python process", pid),
                             "if it starts Python as a child, attach to that process");
    }
}

static au_error *decide(search *s)
{
    au_layout layout;
    au_layout chosen_layout;
    uint64_t hexversion = 0;
    uint64_t chosen_version = 0;
    uint64_t bad_version = 0;
    const candidate *chosen = NULL;
    const candidate *other = NULL;
    const candidate *bad = NULL;
    verdict worst = IS_RUNTIME;
    memset(&chosen_layout, 0, sizeof chosen_layout);
    for (size_t i = 0; i < s->candidate_count; i++) {
        const candidate *c = &s->candidates[i];
        verdict v = judge(s, c, &layout, &hexversion);
        if (v != IS_RUNTIME) {
            if (!bad || v == UNSUPPORTED) {
                bad = c;
                worst = v;
                bad_version = hexversion;
            }
            continue;
        }
        if (!chosen || (c->is_main && !chosen->is_main)) {
            other = chosen;
            chosen = c;
            chosen_layout = layout;
            chosen_version = hexversion;
        } else if (!other) {
            other = c;
        }
    }
    if (!chosen) {
        return no_python(s, worst, bad, bad_version);
    }
    take(s->e, s->proc, chosen, &chosen_layout, chosen_version, other);
    return NULL;
}

au_error *au__find_once(au_engine *e, au_proc *proc, int thorough)
{
    search s = {.e = e, .proc = proc};
    e->hopeless = 0;
    au_error *error = e->remote.ops->modules(proc, collect_image, &s);
    if (!error && s.memory) {
        error = au_error_memory();
    }
    if (!error) {
        look_into_all(&s, BY_SECTION);
    }
    if (!error && !s.candidate_count) {
        look_into_all(&s, BY_LIKELY_SYMBOL);
    }
    if (!error && !s.candidate_count && thorough) {
        look_into_all(&s, BY_SYMBOL);
    }
    if (!error && !s.candidate_count && !s.bits32 && thorough) {
        scan_memory(&s);
    }
    if (!error) {
        error = s.memory ? au_error_memory() : decide(&s);
    }
    for (size_t i = 0; i < s.image_count; i++) {
        free(s.images[i].path);
    }
    free(s.images);
    free(s.candidates);
    return error;
}
