/* The program of every matrix image: what a rank sees, and whether messages arrive whole.
 *
 * One line of JSON a rank on standard output, written before the messages and again after them:
 * {"rank": 0, "size": 2, "host": "node1", "library": "Open MPI v5.0.9, …", "comm": "begun" | "ok" | "wrong"}.
 * Exit status 3 where a message arrived with other bytes than were sent. MPI itself ends what it cannot do.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MIB = 1 << 20, ROUNDS = 4 };

static void tell(int rank, int size, const char *host, const char *library, const char *comm)
{
    char text[1024];
    size_t used = 0;
    for (const char *c = library; *c && used + 2 < sizeof text; c++) {
        if (*c == '"' || *c == '\\')
            text[used++] = '\\';
        text[used++] = (*c == '\n' || *c == '\t' || *c == '\r') ? ' ' : *c;
    }
    text[used] = 0;
    printf("{\"rank\": %d, \"size\": %d, \"host\": \"%s\", \"library\": \"%.300s\", \"comm\": \"%s\"}\n", rank, size,
           host, text, comm);
    fflush(stdout);
}

static int differs(const unsigned char *data, unsigned char seed)
{
    for (int i = 0; i < MIB; i++)
        if (data[i] != (unsigned char)(seed + i * 31))
            return 1;
    return 0;
}

static void fill(unsigned char *data, unsigned char seed)
{
    for (int i = 0; i < MIB; i++)
        data[i] = (unsigned char)(seed + i * 31);
}

int main(int argc, char **argv)
{
    int rank, size, length, sum, wrong = 0;
    char host[256] = "", library[MPI_MAX_LIBRARY_VERSION_STRING];
    unsigned char *data = malloc(MIB);

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_library_version(library, &length);
    gethostname(host, sizeof host - 1);
    tell(rank, size, host, library, "begun");

    int mine = rank + 1;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    wrong |= sum != size * (size + 1) / 2;

    if (rank == 0)
        fill(data, 7);
    else
        memset(data, 0, MIB);
    MPI_Bcast(data, MIB, MPI_BYTE, 0, MPI_COMM_WORLD);
    wrong |= differs(data, 7);

    int last = size - 1;
    for (int round = 0; round < ROUNDS && last > 0; round++) {
        if (rank == 0) {
            fill(data, (unsigned char)round);
            MPI_Send(data, MIB, MPI_BYTE, last, round, MPI_COMM_WORLD);
            memset(data, 0, MIB);
            MPI_Recv(data, MIB, MPI_BYTE, last, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            wrong |= differs(data, (unsigned char)(round + 1));
        } else if (rank == last) {
            MPI_Recv(data, MIB, MPI_BYTE, 0, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            wrong |= differs(data, (unsigned char)round);
            fill(data, (unsigned char)(round + 1));
            MPI_Send(data, MIB, MPI_BYTE, 0, round, MPI_COMM_WORLD);
        }
    }
    tell(rank, size, host, library, wrong ? "wrong" : "ok");
    MPI_Finalize();
    free(data);
    return wrong ? 3 : 0;
}
