/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * The parts of a stack read: batch.c asks for the memory and proves the code objects, chain.c walks a look, calls.c
 * weighs what tells who called whom, stack.c judges. Private to these four.
 */
#ifndef AU_ENGINE_STACK_H
#define AU_ENGINE_STACK_H

#include "engine/internal.h"

/** What one batch said of the thread itself, and its piece numbers. */
typedef struct au_batch {
    uint32_t tstate, cframe, epoch;
    uint32_t epoch_first;               /* the same, read before the looks; UINT32_MAX: not asked for */
    uint32_t first_cframe, first_frame; /* what is read before the copies; UINT32_MAX: not asked for */
    uint32_t interp_id;                 /* of a sub-interpreter; UINT32_MAX: not asked for */
    size_t piece_count;                 /* of the stack and what proves it */
    int proven;                         /* it has what proves the code objects */
    int all_hold;                       /* every code object of rec->checks is what it was */
    uint64_t epoch_before;              /* code generation that was read before the looks; 0: none */
    const uint8_t *ts;                  /* copy of the thread state; NULL if not readable */
    au_addr top;                        /* current frame; 0: none */
    au_addr first_top; /* the same before any copy of the stack was made, and nothing held the tracee up; 0: unknown */
    uint8_t first_strays; /* 3.11, 3.12: ... and it was another entry from C than that of `top` */
    au_addr chunk, chunk_top;
    uint8_t even;    /* it took no longer than usual: one copy of it is a moment */
    uint8_t steady;  /* ... or not much longer: two copies that agree are one */
    int cframe_fits; /* the frame pointer was read where the thread state says it is */
} au_batch;

/**
 * Builds the batch out of what is predicted, has it read and judges the thread state; with_checks: proves the code
 * objects of rec->checks in the same call. -1: no memory.
 */
int au__batch_read(au_engine *e, au_interp_rec *interp, au_thread_rec *rec, int with_checks, au_batch *b);

/** Asks for the pieces of the scratch again, into the same buffers, and says whether that took as long as usual. */
void au__batch_serve(au_engine *e, int first, uint8_t *even, uint8_t *steady);

/** What that piece of the batch says of the code objects as a whole (au_code.epoch); 0: nothing. */
uint64_t au__batch_epoch(const au_engine *e, const au_interp_rec *interp, uint32_t number);

/** The current frame before the copies, from those pieces; cframe: the one that is current, `at` bytes into its piece.
 */
au_addr au__batch_first_top(const au_engine *e, uint32_t first_cframe, uint32_t first_frame, au_addr cframe,
                            uint64_t at);

/** Does it prove the code objects of rec->checks? Sets b->all_hold. */
void au__batch_judge_checks(au_engine *e, au_interp_rec *interp, au_thread_rec *rec, au_batch *b);

/** 3.11, 3.12: a cframe is where the last batch did not look; a sample is made, so what was not met is left out. */
void au__cframe_note(const au_engine *e, au_thread_rec *rec, au_addr cframe);
void au__cframe_forget(const au_engine *e, au_thread_rec *rec);

/**
 * Proves the code objects of rec->checks for the looks of the current batch. Overwrites its pieces. `epoch_before` is
 * that of the batch. -1: no memory.
 */
int au__batch_prove(au_engine *e, au_interp_rec *interp, au_thread_rec *rec, uint64_t epoch_before);

/** Puts a code object on the list of those that are proven with each look; takes one off. -1: no memory. */
int au__check_add(au_engine *e, au_thread_rec *rec, au_code *code);
void au__check_drop(au_engine *e, au_thread_rec *rec, size_t index);

/** Bytes before a frame outside the chunks that are copied with it: 3.11 has the generator's state there. */
static inline uint32_t au__frame_lead(const au_layout *l)
{
    return l->minor == 11 ? 8 : 0;
}

/** Bytes of such a copy, the lead included. */
static inline uint32_t au__frame_copy(const au_layout *l)
{
    return au__frame_lead(l) + (l->minor == 10 ? l->frame_state + 4 : l->frame_localsplus);
}

enum { AU_CFRAMES_PART = 4096, AU_CFRAMES_MAX = 64 << 10 }; /* bytes of the C stack: grown to, at most */

enum { AU_OWNER_GENERATOR = 1 }; /* Include/internal/pycore_frame.h, enum _frameowner */

static inline int au__covers(const au_chunk *c, au_addr addr)
{
    return addr >= c->addr && addr - c->addr < c->size;
}

/** The chunk that has addr, sought from `chunk` on; rec->chunk_count: none. */
size_t au__chunk_of(const au_thread_rec *rec, size_t chunk, au_addr addr);

/** A look's copy of a frame in a chunk; NULL if the copy is too short or was not readable. */
const uint8_t *au__in_chunk(au_engine *e, const au_chunk *c, au_addr addr, int look);

typedef enum au_verdict {
    AU_FRAME_GOOD,
    AU_FRAME_SKIP, /* a shim */
    AU_FRAME_DROP, /* has returned already; its caller is intact */
    AU_FRAME_CUT,  /* a generator that nobody resumes any more */
    AU_FRAME_LEFT, /* calls nobody (3.10) */
    AU_FRAME_BAD
} au_verdict;

/** Judges a copied frame; `innermost`: no other has been met above it. */
au_verdict au__frame_judge(const au_layout *l, const uint8_t *f, au_addr addr, int innermost, au_raw_frame *out,
                           au_addr *previous);

typedef enum au_chain_end {
    AU_CHAIN_ROOT,    /* followed to its root */
    AU_CHAIN_MISSING, /* needs memory that was not asked for */
    AU_CHAIN_CUT,     /* a frame that has been left, a generator that nobody resumes any more */
    AU_CHAIN_BROKEN,  /* cannot be: cycle, no pointer, dead frame */
    AU_CHAIN_MEMORY,  /* ours */
    AU_CHAIN_ON       /* not at its end yet (chain.c) */
} au_chain_end;

/**
 * Walks the frames of one look into scratch.raw[look], innermost first. With `chase`, memory that is missing is read
 * frame by frame and noted in rec->outside, so that the next batch has it; such a walk is no evidence.
 */
au_chain_end au__chain_walk(au_engine *e, au_thread_rec *rec, const au_batch *b, int look, int chase);

/** The same of the first look, from the frame that was current before the copies were made. */
au_chain_end au__chain_walk_first(au_engine *e, au_thread_rec *rec, const au_batch *b);

/**
 * Is a look sound by itself that begins with the frame that was current before the copies were made? The looks agree on
 * the `common` outermost frames. 0: it cannot be told.
 */
int au__chain_was(au_engine *e, const au_thread_rec *rec, const au_batch *b, int look, size_t common);

/**
 * The looks agree on the `common` outermost frames only: what is above moves faster than two looks can be had. The
 * copy of a chunk is made in well under the time of a call, so one copy alone is a moment too, if the frames in it tell
 * which of them executes. Completes scratch.raw[1] from the second look's copy; 0: it cannot be told.
 */
int au__chain_resolve(au_engine *e, au_thread_rec *rec, size_t common);

/**
 * The same for stacks with generators in what differs: is a look sound by itself? 0: that is not proven. A generator
 * must be among the values of the frame that resumes it.
 */
int au__chain_alone(au_engine *e, const au_thread_rec *rec, const au_batch *b, int look, size_t common);

/**
 * From 3.14 on a frame that has returned has lost its code object, but not its instruction: which of those that were
 * current there last is that in? 0: none.
 */
au_addr au__chain_left(au_engine *e, au_addr frame, uint64_t ip);

/** Learns the calls of a look that agreed with the other one. */
void au__chain_learn(au_engine *e, const au_thread_rec *rec, int look);

typedef enum au_link {
    AU_LINK_UNKNOWN,
    AU_LINK_HELD,  /* the function called is among the values of its caller (CALL takes it from the value stack) */
    AU_LINK_UNHELD /* ... is not: an operator, a property */
} au_link;

/** Calls that were seen, by the code objects of both (links.c). A hash: it may take one call for another. */
au_link au__links_find(au_links *links, au_addr caller, au_addr callee);
void au__links_enter(au_links *links, au_addr caller, au_addr callee, int held);

/**
 * 3.10: learns where the innermost frames of the later look call, and puts callers that have gone on since back to
 * their calls. `both`: the earlier look is whole, too (sites.c).
 */
void au__sites_settle(au_engine *e, const au_thread_rec *rec, int both);

typedef struct au_doubt {
    int unheld; /* a generator is not among the values of its caller */
    int strong; /* ... but at other times, that instruction had its generator; or it used to have another caller */
} au_doubt;

/**
 * A generator that runs is called from a frame that holds the generator, unless C code stands between (asyncio's tasks,
 * `map`). 0: all generators of the look are so called; else a number that stands for those that are not. The two looks
 * cannot tell a caller that was replaced and came back, since its frame has the same place in the chunk.
 */
uint64_t au__chain_doubt(au_engine *e, const au_thread_rec *rec, const au_batch *b, int look, au_doubt *of);

/** The doubts of a look that au__chain_doubt was asked for, none of them strong, have been seen often enough. */
void au__chain_believe(au_engine *e, int look);

enum { AU_SURE = 3 }; /* votes */

/** Counts who calls the generators of a look: of all in it if it is `sure`, else of those that their caller holds. */
void au__chain_callers(au_engine *e, au_thread_rec *rec, const au_batch *b, int look, int sure);

/** The code unit a frame stands at. 0: the instruction pointer is not in this code, so they don't belong together. */
int au__frame_unit(au_engine *e, au_code *code, const au_raw_frame *raw, int innermost, int64_t *unit);

/** Has the frame at addr of a chunk's copy called another one, by what is in the copy? `code` is its code object. */
int au__chain_has_callee(au_engine *e, const au_chunk *c, const au_piece *p, const au_code *code, au_addr addr);

/**
 * A stack that stands but for its innermost instruction (standing.c). `note` keeps what the accepted look has of it, if
 * its copies are still there; `holds` says whether the batch shows it again, and then has brought rec->stack up to date
 * and set *same as au__stack_read does.
 */
void au__standing_note(au_engine *e, au_thread_rec *rec, int look);
int au__standing_holds(au_engine *e, au_thread_rec *rec, const au_batch *b, int *same);
/** The same, of a batch whose thread state and code objects are as they were. */
int au__standing_shows(au_engine *e, au_thread_rec *rec, int even, int *same);
void au__standing_drop(au_thread_rec *rec);

/**
 * The batch has brought a stack that stands: can it be asked for again as it is (again.c)? And a batch that was, and
 * did not show the stack again: takes it as one that was built and served now. 0: there is none.
 */
void au__again_arm(au_engine *e, const au_interp_rec *interp, au_thread_rec *rec, const au_batch *b);
int au__again_take(au_engine *e, const au_thread_rec *rec, au_batch *b);

/** 3.13: looks for the counter of code objects where it should be, until it is found (counter.c). Cold. */
void au__counter_find(au_engine *e, const au_interp_rec *interp, const au_code *code);

/** Brings rec->outside into the order of a look's walk, innermost first, so that a batch can nest. */
void au__outside_order(au_engine *e, au_thread_rec *rec, int look);

/** Reads the list of stack chunks from `chunk` on into rec->chunks, reusing what is known. -1: no memory. */
int au__chunks_find(au_engine *e, au_thread_rec *rec, au_addr chunk, au_addr top);

/*
 * Is this frame, in one copy, the one that executes? Up to 3.13 it says so itself: its stack pointer is in a register
 * and `stacktop` is -1, and a caller's is not (Include/internal/pycore_frame.h, _PyFrame_GetStackPointer). From 3.14 on
 * a frame that has returned loses its executable, so the innermost live one is the last that has one.
 */
static inline int au__executes(const au_layout *l, const uint8_t *f)
{
    return l->frame_stacktop != AU_ABSENT && au__i32(f + l->frame_stacktop) == -1;
}

#endif
