/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds a fuzz target with every file of its corpus, without a fuzzer: the same targets run in every test.
 *
 *     replay_<name> [FILE or DIRECTORY]...        default: fuzz/corpus/<name> below the working directory
 *
 * The outcome goes to standard output and, as TAP, to the file named by CK_TAP_LOG_FILE_NAME: the one variable that
 * Check's programs know too. A line is written when an input has passed; an input that crashes the target leaves the
 * file without a plan, which the reader of the results counts as a failure. The input is named before it is tried.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct replay {
    FILE *tap;   /* NULL: none wanted */
    size_t done; /* inputs that passed */
} replay;

static int complain(const char *path)
{
    fprintf(stderr, "replay: %s: %s\n", path, strerror(errno));
    return -1;
}

static int replay_file(replay *run, const char *path)
{
    FILE *file = fopen(path, "rb");
    struct stat info;
    if (!file || fstat(fileno(file), &info) != 0) {
        int result = complain(path);
        if (file)
            fclose(file);
        return result;
    }
    size_t size = (size_t)info.st_size;
    /* Exactly as large as the input, so that a sanitizer sees a read behind its end. */
    uint8_t *data = malloc(size ? size : 1);
    if (!data || fread(data, 1, size, file) != size) {
        int result = complain(path);
        free(data);
        fclose(file);
        return result;
    }
    fclose(file);
    if (run->tap) {
        fprintf(run->tap, "# %s\n", path);
        fflush(run->tap);
    }
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    run->done++;
    if (run->tap) {
        fprintf(run->tap, "ok %zu - %s\n", run->done, path);
        fflush(run->tap);
    }
    return 0;
}

static int replay_path(replay *run, const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return complain(path);
    if (!S_ISDIR(info.st_mode))
        return replay_file(run, path);
    struct dirent **entries;
    int count = scandir(path, &entries, NULL, alphasort);
    if (count < 0)
        return complain(path);
    int result = 0;
    for (int i = 0; i < count; i++) {
        char inner[4096];
        int length = snprintf(inner, sizeof inner, "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.') {
            if (length < 0 || (size_t)length >= sizeof inner) {
                errno = ENAMETOOLONG;
                result = complain(path);
            } else if (replay_path(run, inner) != 0) {
                result = -1;
            }
        }
        free(entries[i]);
    }
    free(entries);
    return result;
}

int main(int argc, char **argv)
{
    const char *name = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
    if (strncmp(name, "replay_", 7) == 0)
        name += 7;
    char corpus[4096];
    snprintf(corpus, sizeof corpus, "fuzz/corpus/%s", name);

    replay run = {0};
    const char *tap = getenv("CK_TAP_LOG_FILE_NAME");
    if (tap && *tap && !(run.tap = fopen(tap, "w")))
        return complain(tap), EXIT_FAILURE;
    int bad = 0;
    if (argc < 2)
        bad |= replay_path(&run, corpus);
    for (int i = 1; i < argc; i++)
        bad |= replay_path(&run, argv[i]);
    printf("replay of %s: %zu inputs passed\n", name, run.done);
    if (run.tap) {
        if (!bad)
            fprintf(run.tap, "1..%zu\n", run.done);
        fclose(run.tap);
    }
    return bad || run.done == 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
