/* SPDX-License-Identifier: Apache-2.0 */
/* Contract cases: the table, opening, identity, memory, lists of memory. */
#include "objfile/objfile.h"
#include "tests/contract/cases.h"
#include "tests/contract/cases_list.h"

const char *case_table(world *w)
{
    const au_proc_ops *ops = w->sys->ops;
    EXPECT(ops->size == sizeof *ops, "the size is not that of this header");
    EXPECT(ops->name && ops->name[0], "it has no name");
    EXPECT(ops->open && ops->close && ops->status && ops->read && ops->read_many && ops->regions && ops->modules &&
               ops->module_read && ops->threads && ops->thread_states && ops->thread_id_of && ops->thread_name &&
               ops->usage && ops->processes && ops->suspend && ops->resume && ops->registers && ops->unwind &&
               ops->symbolise && ops->kernel_stack && ops->now && ops->sleep_until && ops->wake && ops->explain,
           "a member is not set");
    EXPECT(!(ops->caps & AU_CAP_SWITCHES) || (ops->caps & AU_CAP_THREAD_STATES), "switches without states");
    EXPECT(!(ops->caps & AU_CAP_THREAD_CPU) || (ops->caps & AU_CAP_THREAD_STATES), "CPU time without states");
    EXPECT(!(ops->caps & AU_CAP_STATES_TOLD) || (ops->caps & AU_CAP_THREAD_STATES), "told states without states");
    EXPECT((ops->caps >> 17) == 0, "bits that nobody has defined");
    return NULL;
}

const char *case_open(world *w)
{
    OPEN(w);
    EXPECT(contract_open->pid == w->pid, "the handle has another pid");
    EXPECT(contract_open->ops && contract_open->ops->size == sizeof(au_proc_ops), "the handle has no table");
    uint8_t byte = 0;
    EXPECT(OPS(contract_open)->read(contract_open, w->data + 1, &byte, 1) == AU_OK, "opened, but not to be read");
    EXPECT(byte == world_byte(1), "opened something else");
    shut();
    return NULL;
}

const char *case_open_missing(world *w)
{
    static const au_pid missing[] = {2147483000, 0, -5};
    for (size_t i = 0; i < sizeof missing / sizeof missing[0]; i++) {
        au_proc *p = NULL;
        au_error *error = w->sys->ops->open(w->sys, missing[i], AU_WANT_READ, &p);
        contract_open = error ? NULL : p;
        EXPECT(error, "opened a process that is not there");
        EXPECT(p == NULL, "a failing open has touched its output");
        char number[32];
        snprintf(number, sizeof number, "%lld", (long long)missing[i]);
        int right = (error->code == AU_ERR_OS || error->code == AU_ERR_GONE) && error->message &&
                    (strstr(error->message, number) || error->code == AU_ERR_GONE);
        au_error_clear(error);
        EXPECT(right, "the error has another code or does not name the pid");
    }
    return NULL;
}

const char *case_close(world *w)
{
    w->sys->ops->close(NULL);
    size_t before = w->handles(w);
    for (int i = 0; i < 3; i++) {
        OPEN(w);
        uint8_t byte;
        au_thread_state states[3] = {{.tid = w->spinner, .wanted = AU_STATE_RUN | AU_STATE_SWITCHES | AU_STATE_CPU},
                                     {.tid = w->sleeper, .wanted = AU_STATE_RUN | AU_STATE_SWITCHES},
                                     {.tid = w->extra, .wanted = AU_STATE_SWITCHES}};
        OPS(contract_open)->read(contract_open, w->data, &byte, 1);
        OPS(contract_open)->thread_states(contract_open, states, 3); /* and never let go of */
        au_usage usage;
        OPS(contract_open)->usage(contract_open, &usage);
        au_thread threads[4];
        size_t n;
        EXPECT(!failed(OPS(contract_open)->threads(contract_open, threads, 4, &n)), "threads failed");
        shut();
    }
    EXPECT(w->handles(w) == before, "a closed handle leaves something open");
    return NULL;
}

const char *case_status(world *w)
{
    OPEN(w);
    au_proc_status status = {.state = -1};
    EXPECT(OPS(contract_open)->status(contract_open, &status) == AU_OK, "no status of a running process");
    EXPECT(status.state == AU_RUNNING, "a running process is said to have ended");
    EXPECT(status.generation == 0, "the generation does not begin at 0");
    EXPECT(status.pointer_bytes == 8, "a 64-bit process has no 8-byte pointers");
    EXPECT(status.page_bytes >= 4096 && (status.page_bytes & (status.page_bytes - 1)) == 0, "absurd page size");
    EXPECT(status.start_time_ns != 0, "no start time");
    uint64_t start = status.start_time_ns;
    EXPECT(OPS(contract_open)->status(contract_open, &status) == AU_OK && status.start_time_ns == start &&
               status.generation == 0,
           "a second look sees another process");
    shut();
    return NULL;
}

const char *case_status_exec(world *w)
{
    if (!w->exec) {
        return "SKIP: on this system no program becomes another one";
    }
    OPEN(w);
    au_proc_status before = {0}, after = {0};
    EXPECT(OPS(contract_open)->status(contract_open, &before) == AU_OK, "no status");
    w->exec(w);
    EXPECT(OPS(contract_open)->status(contract_open, &after) == AU_OK, "an exec has ended the handle");
    EXPECT(after.state == AU_RUNNING, "an exec is taken for the end");
    EXPECT(after.generation > before.generation, "an exec is not noticed");
    EXPECT(before.list_stamp == 0 || after.list_stamp != before.list_stamp, "the list stamp stays through an exec");
    EXPECT(after.start_time_ns == before.start_time_ns, "an exec changes the identity");
    uint8_t bytes[16];
    EXPECT(OPS(contract_open)->read(contract_open, w->data, bytes, sizeof bytes) == AU_FAULT,
           "memory of the old program is still served");
    shut();
    return NULL;
}

const char *case_status_end(world *w)
{
    OPEN(w);
    w->end(w);
    au_proc_status status = {.state = AU_RUNNING};
    au_outcome outcome = OPS(contract_open)->status(contract_open, &status);
    EXPECT(outcome == AU_GONE || (outcome == AU_OK && status.state == AU_EXITED), "the end is not noticed");
    uint8_t byte;
    EXPECT(OPS(contract_open)->read(contract_open, w->data, &byte, 1) == AU_GONE, "read after the end");
    au_piece pieces[2] = {{w->data, &byte, 1, 99}, {w->data, &byte, 1, 99}};
    EXPECT(OPS(contract_open)->read_many(contract_open, pieces, 2) == 0 && pieces[0].outcome == AU_GONE &&
               pieces[1].outcome == AU_GONE,
           "read_many after the end");
    shut();
    return NULL;
}

static int stop_at_first_region(void *baton, const au_region *region)
{
    (void)region;
    ++*(int *)baton;
    return 1;
}

static int stop_at_first_module(void *baton, const au_module *module)
{
    (void)module;
    ++*(int *)baton;
    return 1;
}

/** The pid lives on in somebody else; he has the same memory at the same place, so that only identity protects us. */
const char *case_identity(world *w)
{
    OPEN(w);
    if (w->reuse(w) != 0) {
        shut();
        return "SKIP: this machine does not let us choose pids";
    }
    uint8_t byte;
    au_piece piece = {w->symbol_at, &byte, 1, 99};
    au_proc *p = contract_open;
    EXPECT(OPS(p)->read_many(p, &piece, 1) == 0 && piece.outcome == AU_GONE,
           "read_many serves the new owner of the pid");
    EXPECT(OPS(p)->read(p, w->symbol_at, &byte, 1) == AU_GONE, "read serves the new owner of the pid");
    au_proc_status status = {.state = AU_RUNNING};
    au_outcome outcome = OPS(p)->status(p, &status);
    EXPECT(outcome == AU_GONE || (outcome == AU_OK && status.state == AU_EXITED), "status is of the new owner");
    int seen = 0;
    au_thread thread;
    size_t n;
    EXPECT(failed(OPS(p)->regions(p, stop_at_first_region, &seen)) && !seen, "regions of the new owner");
    EXPECT(failed(OPS(p)->modules(p, stop_at_first_module, &seen)) && !seen, "modules of the new owner");
    EXPECT(failed(OPS(p)->threads(p, &thread, 1, &n)), "threads of the new owner");
    au_thread_state state = {.tid = w->pid, .wanted = AU_STATE_SWITCHES};
    EXPECT(OPS(p)->thread_states(p, &state, 1) == 0 && state.outcome == AU_GONE, "thread_states of the new owner");
    au_usage usage;
    EXPECT(OPS(p)->usage(p, &usage) == AU_GONE, "usage of the new owner");
    au_tid tid;
    EXPECT(OPS(p)->thread_id_of(p, AU_ID_NAMESPACED, (uint64_t)w->pid, &tid) != AU_OK, "ids of the new owner");
    char name[16];
    EXPECT(OPS(p)->thread_name(p, w->pid, name, sizeof name) != AU_OK, "names of the new owner");
    shut();
    return NULL;
}

/* Who sleeps meanwhile is not told later than who asks. */
const char *case_identity_after_sleep(world *w)
{
    OPEN(w);
    au_proc *p = contract_open;
    uint8_t byte;
    au_piece piece = {w->data, &byte, 1, 99};
    w->sys->ops->sleep_until(w->sys, w->sys->ops->now(w->sys) + 1000000);
    EXPECT(OPS(p)->read_many(p, &piece, 1) == 1 && piece.outcome == AU_OK,
           "a living process is not read after a sleep");
    if (w->reuse(w) != 0) {
        shut();
        return "SKIP: this machine does not let us choose pids";
    }
    w->sys->ops->sleep_until(w->sys, w->sys->ops->now(w->sys) + 1000000);
    piece.addr = w->symbol_at;
    EXPECT(OPS(p)->read_many(p, &piece, 1) == 0 && piece.outcome == AU_GONE,
           "read_many after a sleep serves the new owner of the pid");
    shut();
    return NULL;
}

const char *case_read(world *w)
{
    OPEN(w);
    static uint8_t buf[WORLD_DATA + WORLD_PAGE];
    static const size_t lens[] = {1, 7, 8, 4096, 4097, 20000, WORLD_DATA};
    au_proc *p = contract_open;
    for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++) {
        size_t at = lens[i] < WORLD_DATA / 2 ? 4000 : 0;
        memset(buf, 0xee, sizeof buf);
        EXPECT(OPS(p)->read(p, w->data + at, buf, lens[i]) == AU_OK, "mapped memory is not read");
        EXPECT(is_pattern(buf, at, lens[i]), "not the bytes of that address");
        EXPECT(buf[lens[i]] == 0xee, "more bytes than asked for");
    }
    EXPECT(OPS(p)->read(p, w->hole, buf, 1) == AU_FAULT, "a hole is no fault");
    EXPECT(OPS(p)->read(p, w->hole - 8, buf, 16) == AU_FAULT, "half in a hole is no fault");
    EXPECT(OPS(p)->read(p, UINT64_MAX - 3, buf, 8) == AU_FAULT, "around the end of all addresses is no fault");
    EXPECT(OPS(p)->read(p, 0, buf, 8) == AU_FAULT, "NULL is no fault");
    EXPECT(OPS(p)->read(p, 0x800000000000, buf, 8) == AU_FAULT, "an address of no map is no fault");
    EXPECT(OPS(p)->read(p, w->hole, buf, 0) == AU_OK, "nothing cannot be read");
    EXPECT(OPS(p)->read(p, w->data, buf, 8) == AU_OK && is_pattern(buf, 0, 8), "a fault spoils the next read");
    shut();
    return NULL;
}

const char *case_read_guarded(world *w)
{
    if (w->serves_all) {
        return "SKIP: this system lets us read what the program itself may not";
    }
    OPEN(w);
    uint8_t buf[8];
    EXPECT(OPS(contract_open)->read(contract_open, w->guarded, buf, sizeof buf) == AU_FAULT,
           "a page without the right to read is no fault");
    shut();
    return NULL;
}

const char *case_read_many(world *w)
{
    OPEN(w);
    au_proc *p = contract_open;
    EXPECT(OPS(p)->read_many(p, NULL, 0) == 0, "no pieces are not none");
    static uint8_t a[64], b[5000], c[64], d[64];
    au_piece pieces[] = {
        {w->data + 10, a, 64, 99}, {w->data + 100, b, 5000, 99}, {w->data + 9000, c, 64, 99}, {w->data, d, 0, 99}};
    EXPECT(OPS(p)->read_many(p, pieces, 4) == 4, "four good pieces are not four");
    EXPECT(pieces[0].outcome == AU_OK && pieces[1].outcome == AU_OK && pieces[2].outcome == AU_OK &&
               pieces[3].outcome == AU_OK,
           "a good piece is said to be bad");
    EXPECT(is_pattern(a, 10, 64) && is_pattern(b, 100, 5000) && is_pattern(c, 9000, 64), "wrong bytes");
    shut();
    return NULL;
}

const char *case_read_many_faults(world *w)
{
    OPEN(w);
    au_proc *p = contract_open;
    static uint8_t a[64], b[64], c[4096 + 64], d[64], e[64];
    au_addr guarded = w->serves_all ? w->hole : w->guarded;
    au_piece pieces[] = {{w->hole, a, 64, 99},       {w->data + 50, b, 64, 99}, {w->hole - 4096, c, 4096 + 64, 99},
                         {w->data + 70, d, 64, 99},  {guarded, a, 8, 99},       {UINT64_MAX - 2, a, 8, 99},
                         {w->data + 4090, e, 64, 99}};
    static const au_outcome expected[] = {AU_FAULT, AU_OK, AU_FAULT, AU_OK, AU_FAULT, AU_FAULT, AU_OK};
    size_t n = sizeof pieces / sizeof pieces[0];
    EXPECT(OPS(p)->read_many(p, pieces, n) == 3, "the count is not that of the good pieces");
    for (size_t i = 0; i < n; i++) {
        EXPECT(pieces[i].outcome == (uint32_t)expected[i], "a piece has the outcome of another");
    }
    EXPECT(is_pattern(b, 50, 64) && is_pattern(d, 70, 64) && is_pattern(e, 4090, 64), "wrong bytes after a fault");
    au_piece edge[] = {{w->hole - 64, b, 64, 99}, {w->hole, a, 64, 99}, {w->data + 5, d, 64, 99}};
    EXPECT(OPS(p)->read_many(p, edge, 3) == 2 && edge[0].outcome == AU_OK && edge[1].outcome == AU_FAULT &&
               edge[2].outcome == AU_OK && is_pattern(d, 5, 64),
           "a fault at the border of two pieces is given to the wrong one");
    shut();
    return NULL;
}

const char *case_read_many_order(world *w)
{
    OPEN(w);
    au_proc *p = contract_open;
    /* All into one place: what stays is what was served last, which must be the last piece, and where that one faults,
     * the last good one. */
    uint8_t buf[8] = {0};
    au_piece pieces[40];
    for (size_t i = 0; i < 40; i++) {
        pieces[i] = (au_piece){w->data + i * 300, buf, 8, 99};
    }
    OPS(p)->read_many(p, pieces, 40);
    EXPECT(is_pattern(buf, 39 * 300, 8), "the last piece was not served last");
    OPS(p)->read_many(p, pieces, 17);
    EXPECT(is_pattern(buf, 16 * 300, 8), "the last of fewer pieces was not served last");
    pieces[0].addr = w->hole;
    OPS(p)->read_many(p, pieces, 40);
    EXPECT(is_pattern(buf, 39 * 300, 8), "the order does not hold after a fault");
    shut();
    return NULL;
}

const char *case_read_many_thousands(world *w)
{
    OPEN(w);
    au_proc *p = contract_open;
    enum { MANY = 3000 };
    static uint8_t buf[MANY][8];
    static au_piece pieces[MANY];
    size_t good = 0;
    for (size_t i = 0; i < MANY; i++) {
        int bad = i % 700 == 3 || i == 1023 || i == 1024;
        pieces[i] = (au_piece){bad ? w->hole : w->data + i * 8, buf[i], 8, 99};
        good += !bad;
    }
    EXPECT(OPS(p)->read_many(p, pieces, MANY) == good, "of thousands some are lost");
    for (size_t i = 0; i < MANY; i++) {
        if (pieces[i].addr == w->hole) {
            EXPECT(pieces[i].outcome == AU_FAULT, "a fault is not told");
        } else {
            EXPECT(pieces[i].outcome == AU_OK && is_pattern(buf[i], i * 8, 8), "a piece has the bytes of another");
        }
    }
    shut();
    return NULL;
}

typedef struct region_look {
    world *w;
    au_addr last;
    int unordered, data, guarded, hole, shown;
    unsigned perms;
} region_look;

static int look_at_region(void *baton, const au_region *region)
{
    region_look *look = baton;
    look->shown++;
    look->unordered |= region->start < look->last || region->end <= region->start;
    look->last = region->end;
    if (region->start <= look->w->data && region->end >= look->w->hole) {
        look->data++;
        look->perms = region->perms;
    }
    look->guarded |=
        region->start <= look->w->guarded && region->end > look->w->guarded && !(region->perms & AU_PERM_READ);
    look->hole |= region->start <= look->w->hole && region->end > look->w->hole;
    return 0;
}

const char *case_regions(world *w)
{
    OPEN(w);
    au_proc *p = contract_open;
    region_look look = {.w = w};
    EXPECT(!failed(OPS(p)->regions(p, look_at_region, &look)), "regions failed");
    EXPECT(!look.unordered, "not in rising order, or overlapping");
    EXPECT(look.data == 1, "an unnamed range is missing or shown twice");
    EXPECT((look.perms & 7) == (AU_PERM_READ | AU_PERM_WRITE) && !(look.perms & AU_PERM_SHARED), "wrong permissions");
    EXPECT(look.guarded, "a range without rights is missing");
    EXPECT(!look.hole, "a hole is shown as a range");
    int seen = 0;
    EXPECT(!failed(OPS(p)->regions(p, stop_at_first_region, &seen)), "stopping is taken for an error");
    EXPECT(seen == 1, "the callback's wish to stop is not heard");
    shut();
    return NULL;
}

typedef struct module_look {
    world *w;
    int unordered, mains, found, bad_path;
    au_addr last;
    au_module mine;
} module_look;

static int look_at_module(void *baton, const au_module *module)
{
    module_look *look = baton;
    look->unordered |= module->base < look->last || module->end <= module->base;
    look->last = module->base;
    look->mains += module->is_main != 0;
    look->bad_path |= module->path == NULL;
    if (module->base <= look->w->symbol_at && look->w->symbol_at < module->end) {
        look->found++;
        look->mine = *module;
    }
    return 0;
}

typedef struct module_source {
    au_proc *p;
    uint64_t id;
} module_source;

static int read_module(void *baton, uint64_t offset, void *buf, size_t len, size_t *got)
{
    const module_source *from = baton;
    au_module_source source;
    return failed(OPS(from->p)->module_read(from->p, from->id, offset, buf, len, got, &source)) ? -1 : 0;
}

const char *case_modules(world *w)
{
    OPEN(w);
    au_proc *p = contract_open;
    module_look look = {.w = w};
    EXPECT(!failed(OPS(p)->modules(p, look_at_module, &look)), "modules failed");
    EXPECT(!look.unordered, "not in rising order of base");
    EXPECT(look.mains == 1, "not exactly one executable");
    EXPECT(look.found == 1, "the executable does not reach over its own data, or two do");
    EXPECT(look.mine.is_main, "another module is taken for the executable");
    EXPECT(!look.bad_path, "a module without a label");
    EXPECT(look.mine.bits == AU_BITS_64, "wrong number of bits");
    EXPECT(!look.mine.deleted, "a file that is there is said to be deleted");
    static au_obj obj;
    module_source from = {p, look.mine.id};
    int in_memory = !(OPS(p)->caps & AU_CAP_MODULE_FILE);
    au_obj_source source = {.read = read_module, .baton = &from, .in_memory = in_memory, .base = look.mine.base};
    EXPECT(au_obj_init(&obj, &source) == AU_OBJ_OK, "the module's content is no object file");
    au_obj_range range;
    EXPECT(au_obj_find_symbol(&obj, w->symbol, &range) == AU_OBJ_OK, "a symbol is not found in the module's file");
    EXPECT(range.vaddr + look.mine.bias == w->symbol_at, "the load bias does not lead to the symbol");
    int seen = 0;
    EXPECT(!failed(OPS(p)->modules(p, stop_at_first_module, &seen)) && seen == 1, "the wish to stop is not heard");
    shut();
    return NULL;
}

const char *case_module_read(world *w)
{
    OPEN(w);
    au_proc *p = contract_open;
    module_look look = {.w = w};
    EXPECT(!failed(OPS(p)->modules(p, look_at_module, &look)) && look.found == 1, "modules failed");
    uint8_t whole[128], part[64];
    size_t got = 0;
    au_module_source source = AU_SOURCE_NONE;
    EXPECT(!failed(OPS(p)->module_read(p, look.mine.id, 0, whole, sizeof whole, &got, &source)), "module_read failed");
    EXPECT(got == sizeof whole && memcmp(whole, w->magic, strlen(w->magic)) == 0,
           "the module does not begin with its head");
    EXPECT(source == ((OPS(p)->caps & AU_CAP_MODULE_FILE) ? AU_SOURCE_FILE : AU_SOURCE_MEMORY), "another source");
    EXPECT(!failed(OPS(p)->module_read(p, look.mine.id, 60, part, sizeof part, &got, &source)) && got == sizeof part &&
               memcmp(part, whole + 60, sizeof part) == 0,
           "the offset is not heeded");
    EXPECT(!failed(OPS(p)->module_read(p, look.mine.id, (uint64_t)1 << 40, part, sizeof part, &got, &source)) &&
               got == 0,
           "past the end is not the end");
    EXPECT(failed(OPS(p)->module_read(p, look.mine.id + 100000, 0, part, sizeof part, &got, &source)),
           "a module that is not in the list is read");
    shut();
    return NULL;
}
