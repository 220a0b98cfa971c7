/* Preloaded into a broker: while the file named by READ_FAULT is there, the page cache has nothing and the disk does not
   answer. Each thread that waits for the disk leaves a file of its own beside it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

static int is_cold(void) { return access(getenv("READ_FAULT"), F_OK) == 0; }

static void wait_for_disk(void) {
    char name[4096];
    if (!is_cold())
        return;
    snprintf(name, sizeof name, "%s.%d", getenv("READ_FAULT"), gettid());
    close(open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    while (is_cold())
        usleep(1000);
}

ssize_t preadv64v2(int fd, const struct iovec *parts, int count, off64_t offset, int flags) {
    ssize_t (*real)(int, const struct iovec *, int, off64_t, int) = dlsym(RTLD_NEXT, "preadv64v2");
    if (flags & RWF_NOWAIT && is_cold()) {
        errno = EAGAIN;
        return -1;
    }
    wait_for_disk();
    return real(fd, parts, count, offset, flags);
}

ssize_t preadv2(int fd, const struct iovec *parts, int count, off_t offset, int flags) {
    return preadv64v2(fd, parts, count, offset, flags);
}
