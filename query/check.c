/* SPDX-License-Identifier: Apache-2.0 */
/* Every rule of MOJO version 4 that a stream breaks, one finding a line. */
#include <apr_strings.h>
#include <inttypes.h>

#include "format/mojo_check.h"
#include "query/query.h"

typedef struct check {
    au_query_output *out;
    au_mojo_checker *checker;
} check;

static void on_finding(void *context, const au_mojo_finding *finding)
{
    check *c = context;
    au_query_print(c->out, "%" PRIu64 ": %s: %s%s\n", finding->offset, au_mojo_rule_name(finding->rule),
                   finding->warning ? "warning: " : "", au_mojo_rule_text(finding->rule));
}

static void *open_check(const au_query_options *options, au_query_output *out, apr_pool_t *pool)
{
    check *c = apr_pcalloc(pool, sizeof *c);
    c->out = out;
    c->checker = au_mojo_checker_create(options->unfinished, on_finding, c);
    return c->checker ? c : NULL;
}

static au_error *feed_check(void *state, const void *bytes, size_t len)
{
    return au_mojo_checker_feed(((check *)state)->checker, bytes, len);
}

static au_error *finish_check(void *state, au_query_end *end)
{
    check *c = state;
    uint64_t violations, warnings;
    au_error *error = au_mojo_checker_finish(c->checker, &violations, &warnings);
    end->status = violations > 0;
    return error;
}

static void close_check(void *state)
{
    au_mojo_checker_destroy(((check *)state)->checker);
}

const au_query_command au_query_check = {
    .name = "check",
    .synopsis = "check [--unfinished] [FILE]",
    .help = "the rules of MOJO version 4 that are broken",
    .open = open_check,
    .feed = feed_check,
    .finish = finish_check,
    .close = close_check,
};
