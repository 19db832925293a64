/* This is the first example of most tutorials on message passing, in C. Each rank sends a line of
 * text to rank 0, which prints all lines in rank order.
 *
 *   tutti run -n 4 -- hello_c
 *
 * or by hand, in two terminals:
 *   RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 ./hello_c
 *   RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 ./hello_c */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tutti/c.h>

enum { LONGEST_GREETING = 100 };

/* Ends the program if a call failed. */
static void check(int code) {
  if (code == TUTTI_OK) return;
  fprintf(stderr, "hello_c: %s\n", tutti_error_message());
  exit(EXIT_FAILURE);
}

int main(void) {
  char greeting[LONGEST_GREETING];
  tutti_comm* comm;

  /* tutti_init blocks until all ranks have arrived. The environment gives this process its rank. */
  check(tutti_init(NULL, &comm));
  const int rank = tutti_comm_rank(comm);
  const int size = tutti_comm_size(comm);
  snprintf(greeting, sizeof greeting, "Greetings from process %d of %d!", rank, size);

  /* A call blocks until its operation has ended if the last argument, the work, is NULL. */
  if (rank != 0) {
    check(tutti_send(comm, greeting, strlen(greeting) + 1, TUTTI_UINT8, 0, 0, NULL, NULL));
  } else {
    printf("%s\n", greeting);
    for (int from = 1; from < size; from++) {
      check(tutti_recv(comm, greeting, sizeof greeting, TUTTI_UINT8, from, 0, NULL, NULL));
      printf("%s\n", greeting);
    }
  }
  tutti_comm_free(comm);
  return EXIT_SUCCESS;
}
