/* Try MPI in an image without Python; each rank runs: trial LIBRARY TASKS SECONDS
 *
 * The program loads the MPI library at run time, so it works with the ABIs of Open MPI and MPICH, and prints the
 * same output as trial.py. For old C libraries, it uses nothing newer than glibc 2.17, and has an entry point
 * because the compiler's entry point may need glibc 2.34:
 *   cc -O1 -nostartfiles -o trial trial.c -Wl,--no-as-needed -l:libdl.so.2
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
/* crt1.o needs __libc_start_main@GLIBC_2.34, and newer dlopen is in libc; the program uses the first versions. */
__asm__(".symver __libc_start_main,__libc_start_main@GLIBC_2.2.5");
__asm__(".symver dlopen,dlopen@GLIBC_2.2.5");
__asm__(".symver dlsym,dlsym@GLIBC_2.2.5");
__asm__(".symver dlerror,dlerror@GLIBC_2.2.5");
__asm__(".text\n.globl _start\n.type _start,@function\n_start:\n"
        "xor %ebp,%ebp\n mov %rdx,%r9\n pop %rsi\n mov %rsp,%rdx\n and $-16,%rsp\n"
        "push %rax\n push %rsp\n xor %r8d,%r8d\n xor %ecx,%ecx\n"
        "lea main(%rip),%rdi\n call *__libc_start_main@GOTPCREL(%rip)\n hlt\n");
#elif defined(__aarch64__)
__asm__(".symver __libc_start_main,__libc_start_main@GLIBC_2.17");
__asm__(".symver dlopen,dlopen@GLIBC_2.17");
__asm__(".symver dlsym,dlsym@GLIBC_2.17");
__asm__(".symver dlerror,dlerror@GLIBC_2.17");
__asm__(".text\n.globl _start\n.type _start,%function\n_start:\n"
        "mov x29,#0\n mov x30,#0\n mov x5,x0\n ldr x1,[sp]\n add x2,sp,#8\n mov x6,sp\n"
        "mov x3,#0\n mov x4,#0\n adrp x0,:got:main\n ldr x0,[x0,#:got_lo12:main]\n"
        "bl __libc_start_main\n bl abort\n");
#else
#error "no entry point for this processor; the image needs python3"
#endif

enum { NAME = 256, VERSION = 8192, NUMBERS = 65536, WRONG_SUM = 4, NOT_LOADED = 5 };

enum { WARM = 1, FEWEST = 1, GO = 0x5a, STOP = 0 };
#define BUDGET 1.0 /* the time limit in seconds for one message size */

/* Handles are pointers in Open MPI and 32-bit numbers in MPICH; a register holds either in one word. */
typedef intptr_t handle;
static handle world, byte, number, sum;
static void *ignore, *library;

static void say(const char *form, ...)
{
    char line[1024];
    int used = snprintf(line, sizeof line, "live: ");
    va_list rest;
    va_start(rest, form);
    used += vsnprintf(line + used, sizeof line - used - 1, form, rest);
    va_end(rest);
    if (used > (int)sizeof line - 2)
        used = sizeof line - 2;
    line[used] = '\n';
    /* Each line is one write, so that the lines of two ranks do not mix. */
    if (write(1, line, used + 1) < 0)
        _exit(1);
}

static void *find(const char *name)
{
    void *found = dlsym(library, name);
    if (!found) {
        say("cannot load %s", name);
        exit(NOT_LOADED);
    }
    return found;
}

static void check(const char *name, int status)
{
    if (status) {
        say("error %s returned %d", name, status);
        exit(1);
    }
}

#define CALL(name, types, ...) check(#name, ((int (*) types) find(#name))(__VA_ARGS__))

static void load(const char *path)
{
    library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
        say("cannot load %s: %s", path, dlerror());
        exit(NOT_LOADED);
    }
    world = (handle)dlsym(library, "ompi_mpi_comm_world");
    if (world) {
        byte = (handle)find("ompi_mpi_byte");
        number = (handle)find("ompi_mpi_double");
        sum = (handle)find("ompi_mpi_op_sum");
        ignore = 0;
        return;
    }
    /* The MPICH ABI initiative fixes these numbers (mpi.h of every MPICH since 3.1). */
    world = 0x44000000;
    byte = 0x4c00010d;
    number = 0x4c00080b;
    sum = 0x58000003;
    ignore = (void *)1;
}

static int sum_is_right(int rank, int size)
{
    double *sent = malloc(NUMBERS * sizeof *sent), *got = malloc(NUMBERS * sizeof *got);
    int right = 1;
    for (int i = 0; i < NUMBERS; i++)
        sent[i] = rank + 1.0, got[i] = 0;
    CALL(MPI_Allreduce, (const void *, void *, int, handle, handle, handle), sent, got, NUMBERS, number, sum, world);
    for (int i = 0; i < NUMBERS; i++)
        right &= got[i] == size * (size + 1) / 2.0;
    free(sent);
    free(got);
    return right;
}

static void send_to(void *buffer, int size, int peer)
{
    CALL(MPI_Send, (void *, int, handle, int, int, handle), buffer, size, byte, peer, 1, world);
}

static void receive_from(void *buffer, int size, int peer)
{
    CALL(MPI_Recv, (void *, int, handle, int, int, handle, void *), buffer, size, byte, peer, 1, world, ignore);
}

/* The first byte tells the peer whether a message follows, because their number depends on rank 0's clock. */
static void ping_pong(int rank, int peer, const char *kind)
{
    static const int sizes[][2] = {{8, 400}, {64, 400}, {1024, 300}, {16384, 100}, {262144, 30}, {4194304, 8}};
    double (*seconds)(void) = (double (*)(void))find("MPI_Wtime");
    for (unsigned row = 0; row < sizeof sizes / sizeof *sizes; row++) {
        int size = sizes[row][0], times = sizes[row][1], last = 0;
        char *out = malloc(size), *back = malloc(size);
        double best = 1e9, begun = seconds();
        memset(out, GO, size);
        memset(back, 0, size);
        for (int turn = 0; !last; turn++) {
            double started = seconds(), took;
            if (rank == 0) {
                last = turn >= times || (turn >= FEWEST && started - begun > BUDGET);
                out[0] = last ? STOP : GO;
                send_to(out, size, peer);
                receive_from(back, size, peer);
            } else {
                receive_from(back, size, 0);
                send_to(back, size, 0);
                last = back[0] == STOP;
            }
            took = seconds() - started;
            if (turn >= WARM && took < best) /* do not count the first messages, which open connections */
                best = took;
        }
        if (rank == 0)
            say("pingpong %s %d %.9f %s", kind, size, best / 2, memcmp(out, back, size) ? "damaged" : "whole");
        free(out);
        free(back);
    }
}

static int decimal(const char *text)
{
    int value = 0;
    for (; *text >= '0' && *text <= '9'; text++)
        value = value * 10 + (*text - '0');
    return value;
}

static void try_messages(int rank, int size, const char *host)
{
    char *every = calloc(size, NAME);
    int far = 0, near = 0;
    CALL(MPI_Allgather, (const void *, int, handle, void *, int, handle, handle), host, NAME, byte, every, NAME,
         byte, world);
    for (int i = size - 1; i > 0; i--) {
        if (strcmp(every + (size_t)i * NAME, every))
            far = i;
        else
            near = i;
    }
    free(every);
    for (int turn = 0; turn < 2; turn++) {
        int peer = turn ? near : far;
        if (peer && (rank == 0 || rank == peer))
            ping_pong(rank, peer, turn ? "node" : "nodes");
        CALL(MPI_Barrier, (handle), world);
    }
}

int main(int count, char **words)
{
    static char host[NAME], version[VERSION];
    int rank = -1, size = -1, length = 0, status = 0;
    if (count < 4)
        return 2;
    alarm(decimal(words[3]));
    load(words[1]);
    CALL(MPI_Init, (int *, char ***), 0, 0);
    CALL(MPI_Comm_rank, (handle, int *), world, &rank);
    CALL(MPI_Comm_size, (handle, int *), world, &size);
    CALL(MPI_Get_processor_name, (char *, int *), host, &length);
    say("rank %d of %d on %s", rank, size, host);
    if (rank == 0) {
        CALL(MPI_Get_library_version, (char *, int *), version, &length);
        version[strcspn(version, "\n")] = 0;
        say("program c");
        say("library %.300s", version);
    }
    if (size == decimal(words[2])) {
        int right = sum_is_right(rank, size);
        say("rank %d sum %s", rank, right ? "right" : "wrong");
        status = right ? 0 : WRONG_SUM;
        try_messages(rank, size, host);
    }
    /* With a wrong world size, the program still exits with 0, so that every rank can report its size. */
    CALL(MPI_Finalize, (void), );
    say("rank %d end", rank);
    return status;
}
