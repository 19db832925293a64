/* Calls every function of <tutti/c.h> as programs do, in a world of one rank. A change to tutti
 * that stops this file from compiling breaks users' programs, and belongs in the changelog. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tutti/c.h>

#define EXPECT(condition) expect((condition), #condition)

static void expect(int good, const char* what) {
  if (good) return;
  printf("not so: %s (%s, rank %d)\n", what, tutti_error_message(), tutti_error_peer());
  exit(1);
}

static const tutti_call_options* options(void) {
  static tutti_call_options result = TUTTI_CALL_OPTIONS_INIT;
  result.timeout_ns = INT64_C(60000000000);
  result.memory = TUTTI_HOST;
  return &result;
}

static void use_codes_and_types(void) {
  EXPECT(strcmp(tutti_code_name(TUTTI_ERROR_PEER_LOST), "peer_lost") == 0);
  EXPECT(tutti_error_set(TUTTI_ERROR_ABORTED, "because") == TUTTI_ERROR_ABORTED);
  EXPECT(strstr(tutti_error_message(), "because") != NULL && tutti_error_peer() == -1);
  EXPECT(tutti_version()[0] != 0);
  EXPECT(tutti_data_type_size(TUTTI_BFLOAT16) == 2);
  EXPECT(strcmp(tutti_data_type_name(TUTTI_BFLOAT16), "bfloat16") == 0);
}

static int add(const void* left, const void* right, void* out, size_t count, tutti_data_type type,
               void* state) {
  (void)type;
  (void)state;
  for (size_t i = 0; i < count; ++i) ((int*)out)[i] = ((const int*)left)[i] + ((const int*)right)[i];
  return TUTTI_OK;
}

static void use_reductions(tutti_comm* comm) {
  const int in[3] = {1, 2, 3};
  const uint64_t counts[1] = {3};
  int out[3] = {0, 0, 0};
  tutti_op own = NULL, half = NULL;
  EXPECT(tutti_op_create_user("add", add, 1, NULL, &own) == TUTTI_OK);
  EXPECT(tutti_op_create_premultiplied_sum(0.5, &half) == TUTTI_OK);
  EXPECT(tutti_all_reduce(comm, in, out, 3, TUTTI_INT32, own, options(), NULL) == TUTTI_OK);
  EXPECT(tutti_all_reduce(comm, TUTTI_IN_PLACE, out, 3, TUTTI_INT32, TUTTI_SUM, NULL, NULL) == TUTTI_OK);
  EXPECT(tutti_reduce(comm, in, out, 3, TUTTI_INT32, TUTTI_PRODUCT, 0, NULL, NULL) == TUTTI_OK);
  EXPECT(tutti_reduce_scatter(comm, in, out, 3, TUTTI_INT32, TUTTI_MIN, NULL, NULL) == TUTTI_OK);
  EXPECT(tutti_reduce_scatter_v(comm, in, out, counts, TUTTI_INT32, TUTTI_MAX, NULL, NULL) == TUTTI_OK);
  EXPECT(tutti_scan(comm, in, out, 3, TUTTI_INT32, TUTTI_BIT_OR, NULL, NULL) == TUTTI_OK);
  EXPECT(tutti_exscan(comm, in, out, 3, TUTTI_INT32, TUTTI_BIT_XOR, NULL, NULL) == TUTTI_OK);
  EXPECT(memcmp(in, out, sizeof in) == 0);
  tutti_op_free(half);
  tutti_op_free(own);
  tutti_op_free(TUTTI_AVG);
  tutti_op_free(TUTTI_BIT_AND);
}

static void use_movements(tutti_comm* comm) {
  const int in[3] = {1, 2, 3};
  const uint64_t counts[1] = {3};
  int out[3] = {0, 0, 0};
  EXPECT(tutti_all_gather(comm, in, out, 3, TUTTI_INT32, NULL, NULL) == TUTTI_OK);
  EXPECT(tutti_all_gather_v(comm, in, out, counts, TUTTI_INT32, NULL, NULL) == TUTTI_OK);
  EXPECT(tutti_all_to_all(comm, in, out, 3, TUTTI_INT32, NULL, NULL) == TUTTI_OK);
  EXPECT(tutti_all_to_all_v(comm, in, counts, out, counts, TUTTI_INT32, NULL, NULL) == TUTTI_OK);
  EXPECT(tutti_gather(comm, in, out, 3, TUTTI_INT32, 0, NULL, NULL) == TUTTI_OK);
  EXPECT(tutti_gather_v(comm, in, 3, out, counts, TUTTI_INT32, 0, NULL, NULL) == TUTTI_OK);
  EXPECT(tutti_scatter(comm, in, out, 3, TUTTI_INT32, 0, NULL, NULL) == TUTTI_OK);
  EXPECT(tutti_scatter_v(comm, in, counts, out, 3, TUTTI_INT32, 0, NULL, NULL) == TUTTI_OK);
  EXPECT(tutti_broadcast(comm, out, 3, TUTTI_INT32, 0, NULL, NULL) == TUTTI_OK);
  EXPECT(tutti_barrier(comm, options(), NULL) == TUTTI_OK);
  EXPECT(memcmp(in, out, sizeof in) == 0);
  tutti_call_options device = TUTTI_CALL_OPTIONS_INIT;
  device.memory = TUTTI_CUDA;
  device.device = 3;
  EXPECT(device.stream == NULL && device.region == NULL);
  EXPECT(tutti_broadcast(comm, out, 3, TUTTI_INT32, 0, &device, NULL) == TUTTI_ERROR_UNSUPPORTED);
}

static void note(void* state, int code, const char* message, int peer) {
  *(int*)state = code == TUTTI_OK && message != NULL && peer == -1;
}

static void use_messages(tutti_comm* comm) {
  double in = 1, out = 0;
  tutti_work* work = NULL;
  EXPECT(tutti_recv(comm, &out, 1, TUTTI_FLOAT64, TUTTI_ANY_RANK, TUTTI_ANY_TAG, NULL, &work) == TUTTI_OK);
  EXPECT(tutti_send(comm, &in, 1, TUTTI_FLOAT64, 0, 7, NULL, NULL) == TUTTI_OK);
  EXPECT(tutti_work_wait(work) == TUTTI_OK && in == out);
  tutti_received received = TUTTI_RECEIVED_INIT;
  EXPECT(tutti_work_received(work, &received) == TUTTI_OK);
  EXPECT(received.source == 0 && received.tag == 7 && received.bytes == sizeof in);
  tutti_work_free(work);

  const tutti_transfer legs[2] = {{TUTTI_RECV, TUTTI_FLOAT64, &out, 1, 8, 0},
                                  {TUTTI_SEND, TUTTI_FLOAT64, &in, 1, 8, 0}};
  int done = 0, called = 0;
  EXPECT(tutti_batch(comm, legs, 2, NULL, &work) == TUTTI_OK);
  tutti_work* same = tutti_work_copy(work);
  EXPECT(tutti_work_wait_for(work, INT64_C(60000000000), &done) == TUTTI_OK && done);
  EXPECT(tutti_work_test(same) == 1 && tutti_work_status(same) == TUTTI_OK);
  EXPECT(tutti_work_then(same, note, &called) == TUTTI_OK && called);
  tutti_work_free(same);
  tutti_work_free(work);
}

static void use_groups(tutti_comm* comm) {
  char text[64];
  tutti_comm *part = NULL, *nobody = comm, *survivors = NULL;
  tutti_allocation* memory = NULL;
  tutti_registration* registration = NULL;
  tutti_statistics statistics = TUTTI_STATISTICS_INIT;
  uint64_t completed = 0;
  EXPECT(tutti_comm_split(comm, 0, 0, &part) == TUTTI_OK && part != NULL);
  EXPECT(tutti_comm_split(comm, TUTTI_NO_COLOR, 0, &nobody) == TUTTI_OK && nobody == NULL);
  EXPECT(tutti_allocate(comm, 4096, &memory) == TUTTI_OK && tutti_allocation_data(memory) != NULL);
  EXPECT(tutti_allocation_size(memory) == 4096 && tutti_allocation_registered(memory) >= 0);
  tutti_allocation_free(memory);
  tutti_allocation_options where = TUTTI_ALLOCATION_OPTIONS_INIT;
  EXPECT(tutti_allocate_with(comm, 4096, &where, &memory) == TUTTI_OK &&
         tutti_allocation_size(memory) == 4096);
  tutti_allocation_free(memory);
  EXPECT(tutti_register_memory(comm, text, sizeof text, &registration) == TUTTI_OK && registration != NULL);
  tutti_registration_free(registration);
  EXPECT(tutti_comm_statistics(comm, &statistics) == TUTTI_OK && statistics.operations > 0);
  EXPECT(tutti_comm_describe(comm, 0, text, sizeof text) > 0);
  EXPECT(tutti_comm_descriptor(comm) >= 0 && tutti_comm_progress(comm) >= 0);
  EXPECT(tutti_comm_shrink(comm, 0, &survivors, &completed) == TUTTI_OK && completed > 0);
  EXPECT(tutti_comm_abort(part, "the end") == TUTTI_OK && tutti_comm_status(part) == TUTTI_ERROR_ABORTED);
  tutti_comm_free(survivors);
  tutti_comm_free(part);
}

static int refuse(void* state, const char* key, const void* value, size_t size, int64_t timeout_ns) {
  (void)state, (void)key, (void)value, (void)size, (void)timeout_ns;
  return tutti_error_set(TUTTI_ERROR_UNSUPPORTED, "it is read-only");
}

static int answer(void* state, const char* key, int64_t timeout_ns, tutti_bytes* value) {
  (void)state, (void)key, (void)timeout_ns;
  return tutti_bytes_set(value, "x", 1);
}

int main(void) {
  use_codes_and_types();
  tutti_init_options how = TUTTI_INIT_OPTIONS_INIT;
  how.transports = "tcp";
  int rank = -1, size = 0;
  EXPECT(tutti_place(&how, &rank, &size) == TUTTI_OK && rank == 0 && size == 1);
  tutti_comm* comm = NULL;
  EXPECT(tutti_init(&how, &comm) == TUTTI_OK);
  EXPECT(tutti_comm_rank(comm) == 0 && tutti_comm_size(comm) == 1);
  use_reductions(comm);
  use_movements(comm);
  use_messages(comm);
  use_groups(comm);
  tutti_comm_free(comm);

  tutti_store store = TUTTI_STORE_INIT;
  store.set = refuse;
  store.get = answer;
  EXPECT(tutti_init_store(&store, 0, 1, &how, &comm) != TUTTI_OK && comm == NULL);
  return 0;
}
