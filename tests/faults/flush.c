/* Preloaded into a broker or a Redis: flushes obey the file named by FLUSH_FAULT. "fail": EIO. "hang": wait until it
   is gone. "slow": 20 ms more. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static int obey(void) {
    for (;;) {
        char what = 0;
        int fd = open(getenv("FLUSH_FAULT"), O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return 0;
        ssize_t got = read(fd, &what, 1);
        close(fd);
        if (got == 1 && what == 'f') {
            errno = EIO;
            return -1;
        }
        if (got == 1 && what == 's') {
            usleep(20000);
            return 0;
        }
        usleep(1000);
    }
}

int fdatasync(int fd) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    return obey() < 0 ? -1 : real(fd);
}

int fsync(int fd) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    return obey() < 0 ? -1 : real(fd);
}
