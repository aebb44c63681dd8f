/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * An invented CPython: a process image (platform/fake) that is laid out like one build, with code objects, stacks,
 * threads and names that the test decides, and what the engine must make of it.
 *
 * Offsets of 3.13 and later come from the build's own table, which is in the image; all are compared with the headers'
 * facts by the layout suite. Failure to build (no memory) aborts.
 */
#ifndef AU_TESTS_ENGINE_WORLD_H
#define AU_TESTS_ENGINE_WORLD_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "engine/engine.h"
#include "engine/layout/layout.h"
#include "platform/fake/image.h"

/** The builds that worlds are made of: one of each version and kind. */
extern const char *const world_builds[];
enum { WORLD_BUILDS = 16 };

/** What frames an entry of a stack is. */
typedef enum w_owner {
    W_PLAIN,     /* in a chunk of the data stack; in 3.10 on the heap, as all are */
    W_GENERATOR, /* in an object */
    W_SHIM       /* entry from C: a frame on the C stack from 3.12 on, a cframe in 3.11 and 3.12, nothing in 3.10 */
} w_owner;

typedef struct w_code {
    struct w_code *next;
    au_addr addr, bytecode; /* bytecode: 3.10 the bytes object, later where it starts */
    char *file, *scope;     /* as the sample shows them */
    int first;
    int units;
    au_addr tlbc[4];
    au_addr file_str, scope_str, table;
    au_addr frame; /* 3.10: the frame kept for the next call (co_zombieframe); 0: none, or in use */
} w_code;

typedef struct w_frame {
    const w_code *code;
    int unit; /* -1: just pushed */
    w_owner owner;
    int tlbc;
} w_frame;

typedef struct w_placed {
    w_frame frame;
    au_addr addr; /* 0: an entry that this version has no frame for */
    size_t size;  /* in the chunk; 0: elsewhere */
    au_addr cframe;
} w_placed;

typedef struct w_chunk {
    au_addr addr;
    size_t size, used;
} w_chunk;

typedef struct w_thread {
    struct w_thread *next;
    au_addr addr, interp, object, name_slot;
    uint64_t ident, native;
    au_tid tid;
    w_placed *frames; /* outermost first */
    size_t count, cap;
    w_chunk *chunks; /* oldest first */
    size_t chunk_count, chunk_cap;
    au_addr cframe;
    au_addr base_frame; /* 3.15; else 0 */
    au_addr *spare;     /* memory of frames outside the chunks, to be used again */
    size_t spare_count, spare_cap;
} w_thread;

typedef struct w_interp {
    struct w_interp *next;
    au_addr addr, active, keys, modules;
    int64_t id;
    size_t active_count;
    au_addr gil; /* once world_gil was called */
} w_interp;

typedef struct world {
    au_image *image;
    const char *label;
    int build;
    unsigned minor;
    int free_threaded;
    au_layout l;
    au_addr runtime;
    uint64_t runtime_size;
    au_addr bias;
    au_addr heap, heap_end;
    au_addr code_type, object_type, thread_type, thread_keys;
    uint32_t next_version;
    uint64_t next_chunk;
    w_code *codes;
    w_thread *threads;
    uint64_t thread_states; /* that were ever made */
    w_interp *interps;      /* newest first, the main one last */
} world;

/** A world of that build with one runtime, served as a module with a section. No interpreter yet. */
world *world_create(const char *label);

/**
 * The same, put into an image that may hold other worlds: at its own addresses, number `nth`. is_main -1: no module,
 * only writable memory of a file, with nothing to find but the cookie.
 */
world *world_create_in(au_image *image, const char *label, int nth, int is_main, const char *path);

/** What is left of the module's file. */
typedef enum w_module_form {
    W_MODULE_SECTIONS, /* a file with the section .PyRuntime and a symbol table: what world_create makes */
    W_MODULE_DYNAMIC,  /* a file without any section headers: dynamic symbols only */
    W_MODULE_BARE,     /* no file, and what is loaded speaks of no section headers */
    W_MODULE_DELETED   /* the file has gone: its headers tell of sections that are not loaded */
} w_module_form;
enum {
    W_MODULE_RELOCATED = 1, /* the dynamic linker has added the load bias in the dynamic section (glibc does) */
    W_MODULE_GNU_HASH = 2,  /* DT_GNU_HASH instead of DT_HASH */
    W_MODULE_OTHER_NAME = 4 /* the runtime has no symbol that is its own */
};
/** Gives a world that was made without a module one; once. */
void world_module(world *w, int is_main, const char *path, w_module_form form, unsigned options);

/** Destroys the image too; of several worlds in one image, `keep_image` all but one. */
void world_destroy(world *w, int keep_image);

au_addr world_alloc(world *w, size_t size);
void world_word(world *w, au_addr at, uint64_t value);
/** C's unsigned long: of eight bytes, or of four. */
void world_long(world *w, au_addr at, uint64_t value);
void world_int(world *w, au_addr at, uint32_t value);
uint64_t world_get(world *w, au_addr at);

enum { W_STR_COMPACT, W_STR_POINTER, W_STR_WSTR };
au_addr world_str32(world *w, const uint32_t *chars, size_t count, int form);
au_addr world_str(world *w, const char *utf8);
au_addr world_bytes(world *w, const void *bytes, size_t len);
au_addr world_int_object(world *w, uint64_t value);
/** A combined dict; with `general`, of the kind that has any keys. */
au_addr world_dict(world *w, int general, const au_addr *keys, const au_addr *values, size_t n);

/** Sets the references to a code object; 0: it is being freed. */
void world_code_refs(world *w, const w_code *code, uint32_t count);

/** A code object with a line table of its own. */
w_code *world_code(world *w, const char *file, const char *scope, int first, int units);
/** Its memory becomes another code object: same address, other content, as after a free. With `same_strings`, also the
 *  memory of the strings and the table is that of the old ones, for names of the same length. */
void world_code_remake(world *w, w_code *code, const char *file, const char *scope, int first, int same_strings);

w_interp *world_interp(world *w, int64_t id);
/** The thread takes the GIL of its interpreter. Before the first call there is none to be seen; not free-threaded. */
void world_gil(world *w, w_interp *interp, const w_thread *holder);
w_thread *world_thread(world *w, w_interp *interp, uint64_t ident, au_tid tid);
/** Unlinks it; its memory stays readable as it was. */
void world_thread_end(world *w, w_thread *thread);

void world_push(world *w, w_thread *thread, w_frame frame);
void world_pop(world *w, w_thread *thread);
/** Pops all and pushes these; the entry from C below them is added. */
void world_stack(world *w, w_thread *thread, const w_frame *frames, size_t count);
void world_set_unit(world *w, w_thread *thread, size_t index, int unit);

enum { W_NAME_VALUES, W_NAME_DICT };
/** Imports `threading` in that interpreter. */
void world_threading(world *w, w_interp *interp);
/** Enters a Thread object for the thread into `interp`'s _active. */
void world_name(world *w, w_interp *interp, w_thread *thread, const char *name, int style);
void world_rename(world *w, w_thread *thread, const char *name);

/** The main thread and one with a frame: enough to be found. */
w_thread *world_basic(world *w);

/** Appends what the thread's stack must be shown as: file:scope:line:line_end:column:column_end, joined by ';'. */
void world_expect(world *w, const w_thread *thread, au_buf *out);

/* ---- running the engine on it ---------------------------------------------------------------------------------- */

typedef struct w_sample {
    char *thread, *stack;
    int64_t iid;
    uint64_t state_id, time_us;
    unsigned flags;
    size_t frames;
} w_sample;

typedef struct w_run {
    au_sink sink;
    au_engine_options options;
    au_sys *sys; /* what the engine is given; NULL: the image's own */
    au_engine *engine;
    au_proc *proc;
    const au_python *python;
    au_ran how;
    au_stats stats;
    w_sample *samples; /* kept unless on_sample is set */
    size_t count, cap;
    uint64_t passes;
    uint64_t time_us; /* sum over passes */
    int (*on_sample)(struct w_run *run, const au_sample *sample);
    int (*on_pass)(struct w_run *run);
    void *baton;
    world *w;
} w_run;

void w_run_init(w_run *run, world *w);
void w_run_deinit(w_run *run);
/** Opens and finds. NULL, or the engine's error, to be cleared by the caller. */
au_error *w_run_find(w_run *run);
/** Runs; with max_passes 0 in the options, until something else ends it. Asserts that there is no error. */
void w_run_go(w_run *run, uint64_t passes);
/** The text of a sample's stack, as world_expect writes it. */
void w_stack_text(const au_sample *sample, au_buf *out);

#endif
