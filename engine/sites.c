/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * 3.10: at which instruction a frame calls.
 *
 * A frame of 3.10 has no word that says whether it calls, or whom. The thread state says who is current, and its caller
 * stands at its call just then; but by the time that its frame is copied it may have gone on, and then its instruction
 * (f_lasti) is a later one. Where the callee executes in both copies, and the caller stands at the same place in both,
 * that is the place of the call nearly always. So the places that a pair of code objects calls from are learnt, and a
 * caller that is found elsewhere is put back to the call that it came from: the nearest before, or, around a loop,
 * after.
 */
#include "engine/stack.h"

enum {
    WAYS = 4,
    SETS = AU_SITES / WAYS,
    PAIRS = 5,   /* innermost calls; those further out stand still, or the looks do not agree */
    WEIGHT = 8,  /* of a look: a half of it is more than nothing for some time */
    ENOUGH = 32, /* weight of all looks at a pair */
    MOST = 512,  /* then what was seen before weighs half */
    PART = 40,   /* per cent of its pair: a place with less is chance, or what a loop in step with the copies shows */
    DISTANCE = 256, /* instructions that a caller is put back */
    PAIR = -1,      /* stands for all places of a pair */
    KNOWN = -2      /* ... for those that were known when they were seen again */
};

static au_site *site_of(au_sites *sites, const au_raw_frame *callee, int64_t at, int enter)
{
    uint64_t hash = (callee[1].code * UINT64_C(0x9e3779b97f4a7c15)) ^ callee->code;
    hash = (hash ^ (uint64_t)at) * UINT64_C(0xd6e8feb86659fd93);
    hash ^= hash >> 29;
    hash *= UINT64_C(0x9e3779b97f4a7c15);
    au_site *set = sites->sites + (hash >> 8) % SETS * WAYS;
    uint32_t tag = (uint32_t)(hash >> 32) | 1; /* 0 is an empty place */
    au_site *least = set;
    for (int i = 0; i < WAYS; i++) {
        if (set[i].tag == tag) {
            return &set[i];
        }
        least = set[i].weight < least->weight ? &set[i] : least;
    }
    if (!enter) {
        return NULL;
    }
    *least = (au_site){.tag = tag};
    return least;
}

/* What is known of a pair as a whole. */
typedef struct pair {
    uint32_t all;  /* weight of its looks */
    uint16_t half; /* how often that was halved */
} pair;

static pair pair_of(au_sites *sites, const au_raw_frame *callee)
{
    const au_site *site = site_of(sites, callee, PAIR, 0);
    return site ? (pair){site->weight, site->half} : (pair){0, 0};
}

static uint32_t weighs(const au_site *site, uint16_t half)
{
    uint16_t halves = site ? (uint16_t)(half - site->half) : 0;
    return site && halves < 16 ? (uint32_t)site->weight >> halves : 0;
}

static uint32_t weight_at(au_sites *sites, const au_raw_frame *callee, int64_t at, pair p)
{
    return weighs(site_of(sites, callee, at, 0), p.half);
}

static int is_call(au_sites *sites, const au_raw_frame *callee, int64_t at, pair p)
{
    return at >= 0 && weight_at(sites, callee, at, p) * 100 > p.all * PART;
}

static void add(au_sites *sites, const au_raw_frame *callee, int64_t at, pair p, uint32_t weight)
{
    au_site *site = site_of(sites, callee, at, 1);
    site->weight = (uint16_t)(weighs(site, p.half) + weight);
    site->half = p.half;
}

static void learn(au_sites *sites, const au_raw_frame *callee)
{
    pair p = pair_of(sites, callee);
    int64_t at = (int64_t)callee[1].ip;
    uint32_t known = is_call(sites, callee, at, p) ? WEIGHT : 0;
    p.half = (uint16_t)(p.half + (p.all + WEIGHT > MOST));
    add(sites, callee, PAIR, p, WEIGHT);
    add(sites, callee, KNOWN, p, known);
    add(sites, callee, at, p, WEIGHT);
}

/* Does the pair call from few places? From many, a caller that has gone on may have come from any of them. */
static int has_calls(au_sites *sites, const au_raw_frame *callee, pair p)
{
    return p.all >= ENOUGH && weight_at(sites, callee, KNOWN, p) * 2 >= p.all;
}

static int is_frame(const au_frame *was, const au_raw_frame *is)
{
    return was->code->addr == is->code && was->ip == is->ip;
}

/* One call that goes on is no news. */
static int goes_on(const au_thread_rec *rec, const au_raw_frame *callee, size_t from_root)
{
    const au_stack *stack = &rec->stack;
    return from_root < stack->count && is_frame(&stack->frames[from_root], &callee[0]) &&
           is_frame(&stack->frames[from_root - 1], &callee[1]);
}

/* The same frame in the earlier look; NULL: it is not there. */
static au_raw_frame *earlier(const au_scratch *s, size_t i)
{
    size_t from_root = s->raw_count[1] - i;
    if (from_root > s->raw_count[0]) {
        return NULL;
    }
    au_raw_frame *frame = &s->raw[0][s->raw_count[0] - from_root];
    return frame->addr == s->raw[1][i].addr && frame->code == s->raw[1][i].code ? frame : NULL;
}

static int64_t call_near(au_sites *sites, const au_raw_frame *callee, const au_raw_frame *before)
{
    int64_t at = (int64_t)callee[1].ip;
    pair p = pair_of(sites, callee);
    if (!has_calls(sites, callee, p) || is_call(sites, callee, at, p)) {
        return at;
    }
    if (before && is_call(sites, callee, (int64_t)before->ip, p)) {
        return (int64_t)before->ip;
    }
    for (int64_t back = at - 1; back >= 0 && back >= at - DISTANCE; back--) {
        if (is_call(sites, callee, back, p)) {
            return back;
        }
    }
    for (int64_t on = at + 1; on <= at + DISTANCE; on++) {
        if (is_call(sites, callee, on, p)) {
            return on;
        }
    }
    return at;
}

void au__sites_settle(au_engine *e, const au_thread_rec *rec, int both)
{
    const au_scratch *s = &e->scratch;
    for (size_t i = 0; i + 1 < s->raw_count[1] && i < PAIRS; i++) {
        au_raw_frame *callee = &s->raw[1][i];
        const au_raw_frame *callee_before = both ? earlier(s, i) : NULL;
        au_raw_frame *before = both ? earlier(s, i + 1) : NULL;
        if ((int64_t)callee[1].ip < 0) {
            continue; /* it has not begun */
        }
        if (callee->executes && callee_before && callee_before->executes && before && before->ip == callee[1].ip) {
            if (!goes_on(rec, callee, s->raw_count[1] - 1 - i)) {
                learn(&e->sites, callee);
            }
            continue;
        }
        callee[1].ip = (uint64_t)call_near(&e->sites, callee, before);
        if (before) {
            before->ip = callee[1].ip;
        }
    }
}
