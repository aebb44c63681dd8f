/* SPDX-License-Identifier: Apache-2.0 */
#include "app/stats.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static uint64_t average_us(const au_stats *stats)
{
    return stats->passes ? stats->pass_sum_us / stats->passes : 0;
}

au_emit_end au_stats_metadata(au_emit *emit, const au_stats *stats, uint64_t stalls)
{
    const struct {
        const char *key;
        uint64_t value;
    } ours[] = {
        {"torn", stats->torn}, {"truncated", stats->truncated}, {"unreadable", stats->unreadable}, {"stalls", stalls}};

    au_emit_end end = au_emit_metadata(emit, "duration", "%" PRIu64, stats->duration_us);
    if (end == AU_EMIT_GOES_ON) {
        end = au_emit_metadata(emit, "sampling", "%" PRIu64 ",%" PRIu64 ",%" PRIu64,
                               stats->passes ? stats->pass_min_us : 0, average_us(stats), stats->pass_max_us);
    }
    if (end == AU_EMIT_GOES_ON) {
        end = au_emit_metadata(emit, "saturation", "%" PRIu64 "/%" PRIu64, stats->late, stats->passes);
    }
    if (end == AU_EMIT_GOES_ON) {
        end = au_emit_metadata(emit, "errors", "%" PRIu64 "/%" PRIu64, stats->errors, stats->samples);
    }
    for (size_t i = 0; i < sizeof ours / sizeof ours[0] && end == AU_EMIT_GOES_ON; i++) {
        if (ours[i].value) {
            end = au_emit_metadata(emit, ours[i].key, "%" PRIu64, ours[i].value);
        }
    }
    return end;
}

enum { VALUE_COLUMN = 32 };

/* "sign label ....... value"; the value begins at column 32. A sign is two columns wide. */
static void line(au_buf *out, const char *sign, const char *label, const char *value)
{
    static const char dots[] = "................................";
    size_t used = 3 + strlen(label) + 1;
    int count = used < VALUE_COLUMN ? (int)(VALUE_COLUMN - 1 - used) : 0;
    (void)au_words_append(out, "%s %s %.*s %s\n", *sign ? sign : "  ", label, count, dots, value);
}

static void share(au_buf *out, const char *sign, const char *label, uint64_t part, uint64_t whole)
{
    char value[96];
    double percent = whole ? 100.0 * (double)part / (double)whole : 0.0;
    snprintf(value, sizeof value, "%" PRIu64 "/%" PRIu64 " (%.2f %%)", part, whole, percent);
    line(out, sign, label, value);
}

static void number(au_buf *out, const char *label, uint64_t count)
{
    char value[32];
    snprintf(value, sizeof value, "%" PRIu64, count);
    line(out, "", label, value);
}

void au_stats_show(const au_console *console, const au_stats *stats, uint64_t stalls)
{
    char value[96];
    au_buf out = {0};
    if (stats->samples == 0) {
        (void)au_words_append(&out, "\n\U0001F623 No samples collected.\n\n");
        au_console_put(console, &out);
        au_buf_deinit(&out);
        return;
    }
    double seconds = (double)stats->duration_us / 1e6;
    double rate = seconds > 0 ? (double)stats->passes / seconds : 0;

    (void)au_words_append(&out, "\n%sStatistics%s\n", au_console_bold(console), au_console_plain(console));
    snprintf(value, sizeof value, "%.2f s", seconds);
    line(&out, "\u231B", "Total duration", value);
    snprintf(value, sizeof value, "%.2f %s", rate >= 1000 ? rate / 1000 : rate, rate >= 1000 ? "kHz" : "Hz");
    line(&out, "", "Average sampling rate", value);
    snprintf(value, sizeof value, "%" PRIu64 "/%" PRIu64 "/%" PRIu64 " us", stats->pass_min_us, average_us(stats),
             stats->pass_max_us);
    line(&out, "\u23F1\uFE0F", "Pass min/average/max", value);
    share(&out, "\U0001F422", "Late passes", stats->late, stats->passes);
    share(&out, "\U0001F480", "Error rate", stats->errors, stats->samples);
    if (stats->errors) {
        number(&out, "  torn", stats->torn);
        number(&out, "  truncated", stats->truncated);
        number(&out, "  unreadable", stats->unreadable);
    }
    if (stalls) {
        number(&out, "Waits for the output", stalls);
    }
    (void)au_words_append(&out, "\n");
    au_console_put(console, &out);
    au_buf_deinit(&out);
}
