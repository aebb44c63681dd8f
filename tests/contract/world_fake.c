/* SPDX-License-Identifier: Apache-2.0 */
/* Worlds without a process: an invented image, and a log played back. */
#include <stdlib.h>

#include "platform/fake/image.h"
#include "tests/contract/host.h"
#include "tests/contract/world.h"

static void image_poke(world *w)
{
    static uint64_t switches = 1;
    au_image_set_thread(w->own, w->sleeper, AU_RUN_ASLEEP, ++switches);
    au_image_set_cpu(w->own, w->sleeper, 1000 * switches, 0);
    au_image_set_cpu(w->own, w->spinner, 1000000 * switches, 0);
}

static void image_end_thread(world *w)
{
    au_image_remove_thread(w->own, w->extra);
}

static void set_runs(world *w, int stopped)
{
    au_image_set_thread(w->own, w->spinner, stopped ? AU_RUN_STOPPED : AU_RUN_RUNNING, 5);
    au_image_set_thread(w->own, w->sleeper, stopped ? AU_RUN_STOPPED : AU_RUN_ASLEEP, 1);
    au_image_set_thread(w->own, w->extra, stopped ? AU_RUN_STOPPED : AU_RUN_ASLEEP, 1);
}

static void image_stop(world *w)
{
    set_runs(w, 1);
}

static void image_go_on(world *w)
{
    set_runs(w, 0);
}

static void image_exec(world *w)
{
    au_image_exec(w->own);
}

static void image_end(world *w)
{
    au_image_exit(w->own);
}

static int image_reuse(world *w)
{
    au_image_exit(w->own); /* an image is its process: whoever has its number later is another image */
    return 0;
}

static size_t image_handles(world *w)
{
    return au_image_open_handles(w->own);
}

static void image_destroy(world *w)
{
    au_image_destroy(w->own);
}

int world_image(world *w)
{
    au_image *image = au_image_create(4242);
    const au_addr data = 0x7f0000100000;
    int bad = !image;
    bad = bad || au_image_map(image, data, WORLD_DATA, AU_PERM_READ | AU_PERM_WRITE, NULL);
    bad = bad || au_image_map(image, data - WORLD_PAGE, WORLD_PAGE, 0, NULL);
    bad = bad || au_image_map(image, data + WORLD_DATA + WORLD_PAGE, WORLD_PAGE, AU_PERM_READ, "/lib/other.so");
    if (bad) {
        return -1;
    }
    for (size_t i = 0; i < WORLD_DATA; i++) {
        au_image_byte(image, data + i, world_byte(i));
    }
    host_program own; /* the test's own executable is the content of the module */
    bad = host_program_read(&own);
    au_module module = {.base = own.base,
                        .end = own.base + 0x400000,
                        .bias = own.bias,
                        .path = "/bin/contract",
                        .is_main = 1,
                        .bits = AU_BITS_64};
    au_module other = {.base = data + WORLD_DATA + WORLD_PAGE,
                       .end = data + WORLD_DATA + 2 * WORLD_PAGE,
                       .bias = data + WORLD_DATA + WORLD_PAGE,
                       .path = "/lib/other.so",
                       .bits = AU_BITS_64};
    bad = bad || au_image_add_module(image, &other, NULL, 0) || au_image_add_module(image, &module, own.bytes, own.len);
    free(own.bytes);
    bad = bad || au_image_add_thread(image, 4242, "main") || au_image_add_thread(image, 4243, "spinner") ||
          au_image_add_thread(image, 4244, "contract-nm") || au_image_add_thread(image, 4245, "extra");
    bad = bad || au_image_add_id(image, AU_ID_PTHREAD, 0x7f0000001000, 4243) ||
          au_image_add_id(image, AU_ID_PTHREAD, 0x7f0000002000, 4244);
    if (bad) {
        return -1;
    }
    au_image_set_drift(image, 1000);
    *w = (world){.sys = au_image_sys(image),
                 .pid = 4242,
                 .parent = 1,
                 .data = data,
                 .hole = data + WORLD_DATA,
                 .guarded = data - WORLD_PAGE,
                 .main = 4242,
                 .spinner = 4243,
                 .sleeper = 4244,
                 .extra = 4245,
                 .spinner_pthread = 0x7f0000001000,
                 .sleeper_pthread = 0x7f0000002000,
                 .sleeper_name = "contract-nm",
                 .symbol = "contract_marker",
                 .symbol_at = host_marker(),
                 .magic = host_magic,
                 .poke = image_poke,
                 .end_thread = image_end_thread,
                 .stop = image_stop,
                 .go_on = image_go_on,
                 .exec = image_exec,
                 .end = image_end,
                 .reuse = image_reuse,
                 .handles = image_handles,
                 .destroy = image_destroy,
                 .own = image};
    image_go_on(w);
    au_image_set_cpu(image, 4243, 1, 0);
    au_image_set_cpu(image, 4244, 1, 0);
    return 0;
}

static void nothing(world *w)
{
    (void)w;
}

static int nothing_reused(world *w)
{
    (void)w;
    return 0;
}

static size_t no_handles(world *w)
{
    (void)w;
    return 0;
}

void world_replayed(world *w, const world *from, au_sys *sys)
{
    *w = *from;
    w->sys = sys;
    w->is_real = 0;
    w->poke = w->end_thread = w->stop = w->go_on = w->end = w->destroy = nothing;
    w->exec = from->exec ? nothing : NULL;
    w->reuse = nothing_reused;
    w->handles = no_handles;
    w->own = NULL;
}
