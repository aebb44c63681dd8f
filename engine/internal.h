/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * What the engine's own files share. Not for other rooms.
 */
#ifndef AU_ENGINE_INTERNAL_H
#define AU_ENGINE_INTERNAL_H

#include <string.h>

#include "base/buf.h"
#include "engine/engine.h"
#include "engine/layout/layout.h"
#include "engine/linetable.h"

/* ---- remote memory (remote.c) ------------------------------------------------------------------------------- */

/** The tracee as the engine sees it: the port, the process and the layout of its Python. */
typedef struct au_remote {
    const au_proc_ops *ops;
    au_proc *proc;
    au_layout layout;
    uint32_t window_cap; /* bytes that may be read to have several fields at once */
} au_remote;

static inline uint64_t au__u64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/** An unsigned long of the tracee, such as a thread id. */
static inline uint64_t au__ulong(const au_layout *l, const uint8_t *p)
{
    uint32_t half;
    memcpy(&half, p, sizeof half);
    return l->long_bytes == 4 ? half : au__u64(p);
}

/** memcmp by words: that of some C libraries goes by bytes. */
static inline int au__same_bytes(const void *a, const void *b, size_t len)
{
    const uint8_t *p = a;
    const uint8_t *q = b;
    for (; len >= 8; len -= 8, p += 8, q += 8) {
        if (au__u64(p) != au__u64(q)) {
            return 0;
        }
    }
    return len == 0 || memcmp(p, q, len) == 0;
}

static inline uint32_t au__u32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline int32_t au__i32(const uint8_t *p)
{
    return (int32_t)au__u32(p);
}

/** Could this be the address of an object or structure of a 64-bit user process? Cheap first sieve of all pointers. */
static inline int au__plausible(au_addr addr)
{
    return addr >= 4096 && addr < (UINT64_C(1) << 56) && addr % 8 == 0;
}

/**
 * Watches a walk along links for a ring: the item at each power of two is kept, and is met again at the latest when the
 * ring has been gone round twice (R. P. Brent, "An improved Monte Carlo factorization algorithm", BIT 20, 1980).
 * Without it one bad link costs as many reads as the longest list that is allowed. Begins as zero.
 */
typedef struct au_ring {
    au_addr kept;
    size_t steps, turn;
} au_ring;

static inline int au__ring_closes(au_ring *ring, au_addr addr)
{
    if (addr == ring->kept) {
        return 1;
    }
    if (ring->steps++ == ring->turn) {
        ring->kept = addr;
        ring->turn = ring->turn * 2 + 1;
    }
    return 0;
}

au_outcome au__read(const au_remote *r, au_addr addr, void *buf, size_t len);
au_outcome au__read_u64(const au_remote *r, au_addr addr, uint64_t *out);
au_outcome au__read_u32(const au_remote *r, au_addr addr, uint32_t *out);

/* ---- Python objects (object.c): cold ------------------------------------------------------------------------- */

/** A string object's facts and where its characters are. */
typedef struct au_str {
    au_addr addr, data;
    uint64_t length;    /* characters */
    uint32_t length_at; /* where the object says so */
    unsigned width;     /* bytes each */
    int pairs;          /* what lies beyond two bytes is two of them */
} au_str;

/**
 * Judges a copied header of `len` bytes from the string at addr. AU_FAULT if that is no string, or one of a kind whose
 * header is longer.
 */
au_outcome au__str_judge(const au_remote *r, au_addr addr, const uint8_t *head, size_t len, au_str *out);

/** How many bytes of a string header au__str_judge wants, and how few do for a compact ASCII one. */
size_t au__str_head_size(const au_layout *layout);
size_t au__str_head_least(const au_layout *layout);

/** Reads a str object and appends its text as UTF-8 (text.h). */
au_outcome au__read_text(const au_remote *r, au_addr addr, au_buf *out);

/** The value of a copied int object (header and two digits), if it is not negative and below 2^60. */
au_outcome au__int_value(const au_layout *layout, const uint8_t *copy, uint64_t *out);

/** A non-negative int object. */
au_outcome au__read_int(const au_remote *r, au_addr addr, uint64_t *out);

typedef enum au_next { AU_NEXT_STOP = 0, AU_NEXT_GO = 1 } au_next;

/** Called for each (key, value) of a dict; addresses of the objects, never 0. */
typedef au_next (*au_dict_fn)(void *baton, au_addr key, au_addr value);

/** Enumerates a dict object. Bounded by what the keys object says it holds, at most 2^24 entries. */
au_outcome au__pydict_each(const au_remote *r, au_addr dict, au_dict_fn fn, void *baton);

/** The value under a string key. AU_FAULT if there is none. */
au_outcome au__pydict_get(const au_remote *r, au_addr dict, const char *key, au_addr *value);

/** The same, and the address of the slot that holds the value. */
au_outcome au__pydict_slot(const au_remote *r, au_addr dict, const char *key, au_addr *slot, au_addr *value);

/** The words that the way to an attribute went through. While all are what they were, it leads to the same value. */
enum { AU_PATH_MAX = 6 };
typedef struct au_path {
    au_addr at[AU_PATH_MAX];
    uint64_t was[AU_PATH_MAX];
    uint32_t count;
} au_path;

/** An attribute in an instance's own dictionary, whatever form that has. `path` may be NULL. */
au_outcome au__instance_get(const au_remote *r, au_addr object, const char *name, au_path *path, au_addr *value);

/* ---- code objects (code.c) ----------------------------------------------------------------------------------- */

typedef struct au_code {
    /* what a stack that holds it asks for, close together */
    au_addr addr;
    uint64_t epoch;       /* valid while the interpreter's code generation is this; 0: never */
    uint64_t born_batch;  /* entered after the looks of this batch */
    uint64_t valid_batch; /* proven in this batch */
    uint64_t shown_batch; /* last batch in which a stack held it */
    au_addr start;        /* of the bytecode in the code object (3.11+), or in its bytes object (3.10) */
    au_addr tlbc_start;   /* free-threaded 3.14+: last per-thread copy that was seen */
    uint32_t units;       /* length of the bytecode in code units */
    uint32_t maker;       /* serial of the interpreter that it was met in */
    int32_t firsttraceable;
    uint32_t pins;        /* references from stacks and check lists */
    uint8_t counted;      /* when it was proven last, something referred to it */
    uint8_t orphan;       /* no longer in the table; freed with its last pin */
    uint8_t shim;         /* CPython's own: never shown */
    uint8_t by_content;   /* no version number: its names and table are compared */
    uint32_t frame_bytes; /* 3.12+: of a frame; the callee's begins behind it. 0: not told */
    uint32_t *slot_unit;  /* open addressing: code unit + 1 -> index into locations */
    uint32_t *slot_location;
    uint32_t slot_count, slot_cap;
    au_location **locations; /* distinct positions */
    /* the rest */
    struct au_code *next; /* in the hash chain */
    uint32_t used;        /* clock bit of the eviction */
    uint32_t version;     /* 3.12+: co_version, counted up by its interpreter; 0: none */
    int32_t firstlineno;
    int32_t tlbc_index;
    uint8_t *head; /* the fields that are compared: layout's window, copied */
    au_str scope_str, file_str;
    uint8_t *scope_raw, *file_raw; /* characters as in the tracee */
    uint32_t scope_bytes, file_bytes;
    uint8_t *table; /* co_linetable */
    uint32_t table_bytes;
    au_addr table_addr;
    char *file, *scope;       /* UTF-8 */
    size_t bytes;             /* memory held, for the bound */
    au_linetable_mark *marks; /* index of a long table, made at the first look-up */
    size_t mark_count;
    uint32_t location_count, location_cap;
    uint32_t *position_slots; /* open addressing, once there are many: position -> index into locations + 1 */
    uint32_t position_cap;
} au_code;

typedef struct au_codes {
    au_code **buckets;
    size_t bucket_count, count;
    size_t hand; /* of the clock */
    size_t bytes;
    size_t max_count, max_bytes;
    int by_content;              /* numbers and counts of code objects prove nothing: all are compared by content */
    au_addr code_type;           /* address of PyCode_Type once it was seen */
    uint32_t head_from, head_to; /* window of the code object that is compared */
    au_buf scratch, text;
    au_stats *stats;
} au_codes;

int au__codes_init(au_codes *codes, au_stats *stats);
void au__codes_deinit(au_codes *codes);
/** Sets the window for a layout and forgets everything. */
void au__codes_reset(au_codes *codes, const au_layout *layout);
au_code *au__codes_get(au_codes *codes, au_addr addr);

/**
 * Does something refer to the object of which this is the head, up to its type? Include/object.h, refcount.h: a count
 * of 64 bits at the head (3.12+: 32 of them), that of immortal ones far above any other (3.11: 999999999). An object
 * that is being freed has 0, memory that was given back a pointer there: also one below 4 GiB, as a program at a fixed
 * address has it, lies above that program, so above COUNT_MAX. Free-threaded: a local count at 12 and a shared one at
 * 16 whose low two bits are flags.
 */
int au__object_lives(const au_layout *layout, const uint8_t *head);

/**
 * Reads a code object anew and enters it (replacing an unpinned entry of the same address; a pinned one is replaced in
 * place of the table and lives on for those who hold it). Cold: allocates. NULL with *outcome AU_FAULT when there is no
 * code object there or it changed while it was read; NULL with AU_OK when there is no memory.
 */
au_code *au__codes_resolve(au_codes *codes, const au_remote *r, au_addr addr, au_outcome *outcome);

void au__code_pin(au_code *code);
void au__code_unpin(au_codes *codes, au_code *code);

/** The location of an instruction. `leaf_entry`: before the first traceable one. NULL: no memory. */
au_location *au__code_location(au_codes *codes, const au_remote *r, au_code *code, int64_t unit);

/* ---- threads and stacks -------------------------------------------------------------------------------------- */

/** A frame of an accepted stack. */
typedef struct au_frame {
    au_code *code;
    uint64_t ip;
    au_location *location;
} au_frame;

typedef struct au_stack {
    au_location **shown; /* as the sink gets it; made when it is asked for */
    size_t shown_count;  /* 0: to be made */
    unsigned flags;      /* AU_SAMPLE_TORN, AU_SAMPLE_TRUNCATED */
    au_frame *frames;    /* outermost first */
    size_t count, cap, shown_cap;
} au_stack;

/** A frame as it was read, innermost first. */
typedef struct au_raw_frame {
    au_addr addr, code;
    uint64_t ip;
    int32_t tlbc;
    uint8_t owner;
    uint8_t alone;    /* told by one copy */
    uint8_t entered;  /* called from C: a shim lies between it and its caller (3.12+) */
    uint8_t inferred; /* a generator that does not run in this copy: its caller is the one it had when it did */
    uint8_t executes; /* 3.10: its copy says so */
    uint8_t left;    /* it has returned before this copy was made, and lost its code: that is told by its instruction */
    uint8_t unheld;  /* a generator that its caller does not have among its values, and never had: C code between */
    int32_t outside; /* index in the list of frames outside the chunks; -1: in a chunk */
    int32_t shim;    /* the same of the shim below it; -1: none, or in a chunk */
} au_raw_frame;

typedef struct au_chunk {
    au_addr addr;
    uint32_t len;  /* bytes worth reading */
    uint32_t size; /* whole chunk */
    uint32_t piece[2];
} au_chunk;

/** A frame outside the chunks: of a generator, a shim on the C stack; in 3.10 every frame. */
typedef struct au_outside {
    au_addr addr;
    uint32_t idle;  /* samples since it was last in a stack */
    uint32_t depth; /* from the root, when it was in one: the list is kept innermost first */
    uint32_t part;  /* in the spans of the frames; UINT32_MAX: not yet */
    /* of a generator: how it is called */
    uint32_t votes, ip_votes; /* how sure that is: a look that says so is one more, another one less */
    au_addr code;
    au_addr caller; /* frame, shims left out; 0: not known */
    au_addr caller_code, caller_end;
    uint64_t caller_ip;
} au_outside;

typedef struct au_check {
    au_code *code;
    uint32_t idle; /* samples since it was last in a stack */
    uint32_t part; /* first of its parts in the proof; UINT32_MAX: none */
    int failed;    /* asked for, and it is another object by now */
} au_check;

/** A stretch of memory that is asked for, and the range that has it. */
typedef struct au_part {
    au_addr addr;
    uint32_t len;
    uint32_t range, offset;
} au_part;

/** Parts that lie near each other. */
typedef struct au_range {
    au_addr addr;
    uint32_t len;
    uint32_t turn;     /* number of the batch that it was last put in order for */
    uint32_t piece[2]; /* of the batch: in each of its copies */
} au_range;

/** Memory that is asked for again and again, in as few pieces as may be (spans.c). */
typedef struct au_spans {
    int stale; /* the parts are no longer those that are wanted */
    int split; /* parts are not joined: something between them cannot be read */
    au_part *parts;
    size_t part_count, part_cap;
    au_part **order; /* the parts by address */
    size_t order_cap;
    au_range *ranges;
    size_t range_count, range_cap;
} au_spans;

/** A frame in a chunk, as it was when its stack was accepted. */
typedef struct au_standing_frame {
    uint64_t executable, previous, ip;
    uint32_t offset; /* in the chunk */
    int32_t tlbc;
} au_standing_frame;

/** Innermost first; owner 0, all in the newest chunk, called from Python. */
typedef struct au_standing {
    au_addr chunk;
    au_standing_frame *frames;
    size_t count, cap; /* count 0: there is none */
} au_standing;

/** What the samples of a thread in CPU mode have said against what the system has counted (cpu.c). */
typedef struct au_cpu_account {
    uint64_t counted_ns; /* CPU time at the last look; 0: no look yet */
    uint64_t waited_ns;  /* and how long it had waited for a CPU */
    uint64_t switches;   /* at that look */
    int64_t stands_ns;   /* how long neither of them has changed */
    int64_t waits_ns;    /* waited and not left out; negative: left out and not counted as a wait (yet) */
    int64_t owed_ns;     /* counted and not written; negative: written and not counted (yet) */
    int64_t lent_ns;     /* of the stint that it is in, not counted yet */
} au_cpu_account;

/** The same of the process, with the threads that have ended. */
typedef struct au_cpu_pool {
    uint64_t counted_ns; /* 0: no look yet */
    uint64_t pass;       /* number of the last pass that looked */
    int64_t owed_ns;
    int64_t room_ns;
} au_cpu_pool;

/** One thread state. What a pass over sleepers touches comes first. */
typedef struct au_thread_rec {
    au_addr addr, interp;
    int64_t iid;
    uint64_t state_id;    /* ours, never used again */
    uint64_t looked_pass; /* number of the last pass that looked at it */
    au_tid tid;           /* as we see it; 0 if not known */
    char *name;           /* UTF-8, owned; NULL: not resolved, `hex` counts */
    size_t name_length, hex_length;
    uint8_t unchanged;     /* in this pass the stack is what it was */
    uint8_t gil_proof;     /* its stack was read, and since before that the thread did not have the GIL */
    uint8_t proven_asleep; /* asleep at state.switches, and the stack was read after that */
    uint8_t asked;         /* the run state was asked for: 1 at first sight, 2 since the stack stood for long */
    uint8_t stack_taken;   /* the sink's previous sample of this thread state had exactly this stack */
    uint8_t shares_tid;    /* another thread state has the same OS thread */
    uint8_t is_main;
    uint32_t still; /* stacks in a row that were equal to the instruction */
    /* last accepted stack, and what of it the sink has taken */
    au_stack stack;
    au_thread_state state;
    au_cpu_account cpu;
    char hex[20];
    uint32_t seen;   /* stamp of the list walk */
    uint64_t ident;  /* pthread_t */
    uint64_t native; /* id in its own namespace; 0 if not told */
    uint64_t unique; /* 3.10: number of the thread state in its interpreter; else 0 */
    uint32_t maker;  /* serial of the interpreter */
    uint32_t tid_tries;
    uint64_t tid_due_ns;
    /* predictions: where its stack was */
    au_chunk *chunks;
    size_t chunk_count, chunk_cap;
    au_outside *outside;
    size_t outside_count, outside_cap;
    au_spans frames;      /* of the frames in outside */
    au_addr cframes;      /* 3.11, 3.12: the part of the C stack that the last cframes were in */
    uint32_t cframes_len; /* 0: not known */
    uint32_t cframe_age;
    au_addr cframe_low, cframe_high; /* those that were met since the part was last made smaller; 0: none */
    au_check *checks;
    size_t check_count, check_cap;
    au_spans proof;        /* of the code objects in checks */
    uint64_t checks_epoch; /* with which all of them were proven; 0: not all */
    au_standing standing;
    au_addr root_entry; /* 3.12+: the entry from C below the first frame of the first chunk; 0: not known */
    uint64_t doubt;     /* au__chain_doubt of the last look that had one and was not followed by one without */
    uint32_t doubted;   /* looks in a row that had it */
    /* name */
    uint64_t name_due_ns;
    uint32_t name_tries;
    au_addr thread_object;
    au_path name_path; /* to the name that was read, and its length */
} au_thread_rec;

/** What a look at the heads of the lists takes: reading them, or the links of the only thread state there is. */
typedef enum au_heads { AU_HEADS_NOT_DUE, AU_HEADS_READ, AU_HEADS_BY_LINKS } au_heads;

typedef struct au_interp_rec {
    au_addr addr;
    int64_t id;
    uint32_t serial; /* ours, never used again: another interpreter may come to be at the same address */
    au_addr threads_head;
    uint64_t epoch;        /* code generation last seen; 0 if there is none */
    uint32_t version_seen; /* 3.12+: code objects of this version and below were made before the current batch */
    uint32_t version_new;  /* highest that was met since */
    au_addr gil;           /* 3.12+: its GIL, or the main interpreter's */
    au_addr gil_holder, gil_holder_before; /* thread state that took it last, in this pass and in the one before */
    uint32_t gil_switches, gil_piece;
    int gil_known, gil_stands;
    uint32_t seen;
    au_addr threading_active; /* dict object, 0 if not known */
    au_addr modules;
    uint64_t names_due_ns;    /* not before: the next look into threading._active */
    uint64_t nameless_due_ns; /* not before: the next search for threads that have no name yet */
    uint32_t names_tries;
} au_interp_rec;

/** What a runtime says of itself: `initialized` and `finalizing` (Include/internal/pycore_runtime.h, all versions). */
typedef enum au_life {
    AU_LIFE_UNKNOWN,
    AU_LIFE_BEGINS, /* neither: Py_Initialize is at work, or has never been */
    AU_LIFE_STANDS, /* initialized */
    AU_LIFE_ENDS    /* not any more, but finalizing, up to the next Py_Initialize */
} au_life;

/** au_code.epoch of what an interpreter counts: not equal to that of any other interpreter. `count` is not 0. */
static inline uint64_t au__epoch(const au_interp_rec *interp, uint64_t count)
{
    enum { COUNT_BITS = 44 };
    return (uint64_t)interp->serial << COUNT_BITS | (count & ((UINT64_C(1) << COUNT_BITS) - 1));
}

enum { AU_LINKS = 4096 };

/** Calls that were seen (links.c). */
typedef struct au_links {
    uint32_t tags[AU_LINKS];
} au_links;

enum { AU_LEFT_PLACES = 64, AU_LEFT_CODES = 16 };

/** The code objects that were current last where a frame lies (calls.c). */
typedef struct au_left {
    au_addr frame;
    au_addr codes[AU_LEFT_CODES]; /* latest first */
} au_left;

enum { AU_SITES = 4096 };

/** A place that a code object was seen calling another at, and how often. */
typedef struct au_site {
    uint32_t tag; /* 0: none */
    uint16_t weight;
    uint16_t half; /* its pair has been halved so often when this was last weighed */
} au_site;

/** 3.10 (sites.c). */
typedef struct au_sites {
    au_site sites[AU_SITES];
} au_sites;

/** Scratch of a stack read, shared by all threads. */
typedef struct au_scratch {
    au_buf arena;
    au_piece *pieces;
    size_t piece_count, piece_cap;
    au_raw_frame *raw[2];
    size_t raw_count[2], raw_cap[2];
    size_t inferred[2]; /* how many of them are */
    au_chunk *chunks;
    size_t chunk_cap;
    au_raw_frame *pending; /* the stack that new code objects were first seen in, up to the innermost of them */
    size_t pending_count, pending_cap;
    size_t newest;    /* raw frames from the root to the innermost one whose code object was entered just now */
    unsigned tries;   /* looks of this sample that moved */
    size_t dead;      /* raw frames outside of the one whose code object is none any more */
    au_frame *frames; /* the stack in the making, outermost first */
    size_t frame_count, frame_cap;
    uint64_t epoch;  /* of the code objects, read after the looks of this batch; 0: not */
    int calm;        /* ... and it was the same before them: what they refer to was not freed meanwhile */
    int looks_there; /* pieces and arena are those of the looks */
    uint32_t *order; /* ranges with frames outside, that with the innermost one first */
    size_t order_cap;
    uint8_t single[512]; /* a frame read by itself */
} au_scratch;

/**
 * A batch that can be asked for once more as it is: the last one, if it brought the stack of the only thread, and that
 * stood (again.c). What a pass over a stack that stands has to touch lies here together.
 */
typedef struct au_again {
    au_thread_rec *rec; /* NULL: there is none */
    uint8_t served;     /* it was asked for in this pass already, and waits to be judged as any other */
    uint8_t even, steady, proven;
    uint8_t word_count;
    uint16_t word_at[9];            /* words of the thread state, and what they were */
    uint8_t word_bytes[9];          /* 8, or 4 */
    uint32_t tstate, cframe, epoch; /* piece numbers */
    uint32_t first_cframe, first_frame;
    uint32_t frame_at; /* 3.11, 3.12: in the piece of the cframes, the word that leads to the frames */
    uint64_t words[9];
    uint64_t epoch_was;
} au_again;

struct au_engine {
    au_engine_options options;
    au_sys *sys;
    au_sink *sink;
    au_remote remote;
    au_python python;
    char *image_label, *other_label;
    au_addr runtime;
    uint64_t runtime_size;
    uint32_t generation; /* of the process image that was found */
    int hopeless;        /* what was found will not become a Python that we know */
    volatile int stop;
    au_poll_fn poll;
    void *poll_baton;
    au_elsewhere_fn elsewhere;
    void *elsewhere_baton;
    au_found_fn found;
    void *found_baton;
    uint64_t poll_due_ns;
    au_stats stats;
    au_codes codes;
    au_scratch scratch;
    au_again again;
    uint32_t new_code;    /* so many batches ask what counts code objects before the looks too */
    uint64_t batch;       /* number of the current stack batch */
    int slept;            /* since the last batch */
    uint64_t piece_ps[2]; /* what a piece of a batch usually costs, in picoseconds; 0: not known yet. The first
                             batch of a read has cold caches */
    au_interp_rec *interps;
    size_t interp_count, interp_cap;
    uint32_t interp_serial; /* of the last one that was met */
    int reborn;             /* the runtime was ended and begun again: the interpreters that come are new ones */
    au_life life;
    au_thread_rec **threads; /* in the order of the lists */
    size_t thread_count, thread_cap;
    au_thread_state *states;
    size_t states_cap;
    uint32_t *state_owner;
    au_piece *list_pieces;
    size_t list_piece_cap;
    au_piece *quiet_pieces;
    size_t quiet_piece_cap;
    au_buf quiet_arena;
    au_buf list_arena;
    uint32_t *list_range; /* of each thread state that was asked for, the piece it lies in */
    size_t list_range_cap;
    uint32_t list_stamp;
    uint64_t list_due_ns;
    uint64_t list_latest_ns;  /* a whole walk by then, also if no thread has run that was not there */
    uint64_t born_ns;         /* when a walk last met a new thread state */
    int switched;             /* the GIL has changed hands since the last whole walk, or may have */
    uint64_t heads_next_ns;   /* of a process with one thread */
    uint64_t interps_next_ns; /* the same, where its links tell of other threads */
    int lone_active;          /* the thread state of the only thread was the active one when it was read last */
    au_heads heads_due;       /* the next batch looks at the heads of the lists, too */
    uint32_t heads_piece;     /* first of their pieces in the batch */
    au_outcome heads_outcome; /* of the look in this pass */
    size_t names_from;        /* where the next look at the names begins */
    au_thread_rec **nameless; /* scratch of a search for names */
    size_t nameless_cap;
    uint32_t asks; /* run states that this pass may still ask for in advance */
    au_cpu_pool cpu;
    uint64_t main_ident;
    uint64_t next_state_id;
    uint64_t random;
    uint32_t counter_tries, counter_at; /* counter.c; counter_at: where one code object says it is, 0: none yet */
    au_addr counter_code;
    au_location torn_location, truncated_location;
    au_buf text;
    au_links links; /* large and seldom met, so last */
    au_left left[AU_LEFT_PLACES];
    au_sites sites;
};

/** Another runtime has begun: the interpreters that the list has are new ones, and it is due. */
static inline void au__runtime_is_new(au_engine *e)
{
    e->reborn = 1;
    e->list_due_ns = 0;
}

uint64_t au__random(au_engine *e);

/** Grows `*array` of elements of `size` bytes to at least `need`; counts in stats. 0, or -1 without memory. */
int au__grow_to(void *array, size_t *cap, size_t need, size_t size, au_stats *stats);
static inline int au__grow(void *array, size_t *cap, size_t need, size_t size, au_stats *stats)
{
    return need <= *cap ? 0 : au__grow_to(array, cap, need, size, stats);
}

/** Begins a new list of parts; adds one (numbers from 0 on). -1: no memory. */
void au__spans_clear(au_spans *spans);
int au__spans_add(au_engine *e, au_spans *spans, au_addr addr, uint32_t len);
/** Makes the ranges: of parts at most `gap_max` bytes apart, and with no page between them. -1: no memory, stale. */
int au__spans_join(au_engine *e, au_spans *spans, uint32_t gap_max);
/** Has a range failed that is more than its parts? Then they are asked for one by one from the next join on. */
int au__spans_must_split(const au_engine *e, au_spans *spans, int copy);
/** A part in a copy of the batch; NULL if it was not readable. */
const uint8_t *au__spans_copy(const au_engine *e, const au_spans *spans, uint32_t part, int copy);
void au__spans_release(au_spans *spans);

/**
 * Asks for the last batch again, if it can be. 1: it shows the stack of au_again.rec, which is up to date; *same as
 * that of au__stack_read. 0: it does not; if it was asked for, the next au__stack_read goes on with it.
 */
int au__again_stands(au_engine *e, int *same);

typedef enum au_walk {
    AU_WALK_OK,      /* a whole stack */
    AU_WALK_PARTIAL, /* torn or truncated, marked in the stack's flags */
    AU_WALK_LOST,    /* the thread state itself could not be read */
    AU_WALK_MEMORY
} au_walk;

/** Reads one thread's stack into rec->stack (stack.c). Sets *same if it is what rec->stack held before. */
au_walk au__stack_read(au_engine *e, au_interp_rec *interp, au_thread_rec *rec, int *same);
void au__stack_release(au_engine *e, au_thread_rec *rec);

/** How many pieces a look at the heads of the lists takes, and the pieces; buffers are up to the caller (threads.c). */
size_t au__heads_count(const au_engine *e);
void au__heads_want(const au_engine *e, size_t i, au_addr *addr, uint32_t *len);
/** Judges the copies: non-zero if nothing was added or taken off at a head. */
int au__heads_stand(const au_engine *e, const au_piece *pieces);
/** The same by the links of the only thread state that there was: a new one is linked in before it. */
void au__heads_by_links(au_engine *e, const uint8_t *tstate);
/** Is the only thread state that there is the active one? Sets lone_active. */
void au__lone_judge(au_engine *e, const uint8_t *tstate);
/** Where a thread state says whether its OS thread runs in it, 4 bytes (3.12+; else AU_ABSENT), and what they mean. */
static inline uint32_t au__active_at(const au_layout *l)
{
    return l->active_mask ? l->tstate_status : l->minor >= 13 ? l->tstate_state : AU_ABSENT;
}
static inline int au__says_active(const au_layout *l, uint32_t word)
{
    return l->active_mask ? (word & l->active_mask) != 0 : word == 1;
}
/** The same for the look that a pass makes by the way; if something was, the lists are due. */
void au__heads_judge(au_engine *e, const au_piece *pieces);

/**
 * Puts a stretch of memory into a list of pieces without buffers, joined with the last one if they lie near each other:
 * no page is between them that neither touches. The number of its piece. The list must have room for one more.
 */
uint32_t au__join_piece(au_piece *pieces, size_t *count, au_addr addr, uint32_t len);

/** Looks at the GILs and sets `unchanged` of the threads that have not run since (quiet.c). -1: no memory. */
int au__quiet_look(au_engine *e);
/** A stack was read after the look of this pass: says what proves it in the next. */
void au__quiet_prove(au_thread_rec *rec, const au_interp_rec *interp);

/** What to ask of a thread beside its run state: AU_STATE_* of its CPU time, or nothing (cpu.c). */
unsigned au__cpu_wanted(const au_engine *e);
/** In CPU mode a thread is ready, by rec->state as asked in this pass: is it to be written with the pass' time? */
int au__cpu_covers(au_engine *e, au_thread_rec *rec, uint64_t time_us);
/** It has gone to sleep: is so much of its time unwritten that it is to be written once more? */
int au__cpu_owes(const au_engine *e, au_thread_rec *rec, uint64_t time_us);
/** It was. */
void au__cpu_written(au_engine *e, au_thread_rec *rec, uint64_t time_us);

/** Brings interps and threads up to date (threads.c). AU_OK, AU_GONE or AU_FAULT (kept as they were). */
au_outcome au__threads_update(au_engine *e, int full);
void au__threads_clear(au_engine *e);
au_interp_rec *au__interp_of(au_engine *e, const au_thread_rec *rec);

/** Looks up what is due of names and ids: of all threads, or of some of them by turns (names.c). Never fails: what is
 * not known stays its id. */
void au__names_update(au_engine *e, int all, uint64_t now);
/** Its name, else its id in hexadecimal; `length` in bytes. */
const char *au__thread_label(const au_thread_rec *rec, size_t *length);

/** One attempt to find the runtime (find.c); `thorough`: also where it hardly ever is. NULL: found. */
au_error *au__find_once(au_engine *e, au_proc *proc, int thorough);

#endif
