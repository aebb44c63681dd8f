/* SPDX-License-Identifier: Apache-2.0 */
/* Standard descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "platform/posix/posix.h"

void au_standard_descriptors_init(void)
{
    for (int fd = AU_FD_STDIN; fd <= AU_FD_STDERR; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) {
            continue;
        }
        /* The lowest free number is fd (open(2)). Opened the wrong way round: EBADF, as if it were closed. A directory
         * where there is no /dev: that cannot be read or written either. Closed again by exec. */
        if (open("/dev/null", (fd == AU_FD_STDIN ? O_WRONLY : O_RDONLY) | O_CLOEXEC) < 0) {
            (void)open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        }
    }
}

int au_is_terminal(int fd)
{
    return isatty(fd) == 1;
}

int au_terminal_width(int fd)
{
    struct winsize size;
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        return size.ws_col;
    }
    return 80;
}

int au_write_all(int fd, const void *bytes, size_t len)
{
    const char *at = bytes;
    while (len) {
        ssize_t put = write(fd, at, len);
        if (put > 0) {
            at += put;
            len -= (size_t)put;
        } else if (put < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            /* Somebody who shares the terminal or pipe made it non-blocking. */
            struct pollfd room = {.fd = fd, .events = POLLOUT};
            poll(&room, 1, -1);
        } else if (put < 0 && errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

void au_set_binary(int fd)
{
    (void)fd;
}

/* strerror_r comes in two kinds (POSIX: int; GNU: char *), and which one we get depends on the C library. */
static const char *text_of(int result, const char *buf)
{
    return result == 0 ? buf : NULL;
}

static const char *text_of_gnu(const char *result, const char *buf)
{
    (void)buf;
    return result;
}

int au_path_names_place(const char *path)
{
    (void)path;
    return 0;
}

int au_os_error_usual(int os_code)
{
    return os_code;
}

const char *au_os_error_text(int os_code, char *buf, size_t cap)
{
    if (cap == 0) {
        return "";
    }
    buf[0] = 0;
    const char *text = _Generic(strerror_r(os_code, buf, cap), int: text_of, char *: text_of_gnu)(
        strerror_r(os_code, buf, cap), buf);
    if (!text || !*text) {
        snprintf(buf, cap, "error %d", os_code);
    } else if (text != buf) {
        snprintf(buf, cap, "%s", text);
    }
    return buf;
}
