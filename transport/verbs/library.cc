#include "transport/verbs/library.h"

#include <array>
#include <string>

#include "core/shared_library.h"

namespace tutti::verbs {
namespace {

// Returns the name of a function that the library lacks, or null if it has all of them.
const char* bind_all(const SharedLibrary& library, Functions& functions) {
#define TUTTI_BIND(member) \
  if (!library.bind("ibv_" #member, functions.member)) return "ibv_" #member
  TUTTI_BIND(fork_init);
  TUTTI_BIND(get_device_list);
  TUTTI_BIND(free_device_list);
  TUTTI_BIND(get_device_name);
  TUTTI_BIND(open_device);
  TUTTI_BIND(close_device);
  TUTTI_BIND(query_device);
  TUTTI_BIND(query_port);
  TUTTI_BIND(get_async_event);
  TUTTI_BIND(ack_async_event);
  TUTTI_BIND(alloc_pd);
  TUTTI_BIND(dealloc_pd);
  TUTTI_BIND(reg_mr);
  TUTTI_BIND(dereg_mr);
  TUTTI_BIND(create_comp_channel);
  TUTTI_BIND(destroy_comp_channel);
  TUTTI_BIND(create_cq);
  TUTTI_BIND(destroy_cq);
  TUTTI_BIND(get_cq_event);
  TUTTI_BIND(ack_cq_events);
  TUTTI_BIND(create_qp);
  TUTTI_BIND(modify_qp);
  TUTTI_BIND(destroy_qp);
  TUTTI_BIND(wc_status_str);
  TUTTI_BIND(event_type_str);
#undef TUTTI_BIND
  return library.bind("_ibv_query_gid_ex", functions.query_gid_ex) ? nullptr : "ibv_query_gid_ex";
}

Result<Functions> load_now() {
  const std::array<std::string, 1> names = {"libibverbs.so.1"};
  const Result<SharedLibrary> library = SharedLibrary::open(names);
  if (!library.ok()) {
    return Status(Code::unsupported, library.status().message() +
                                         " (on Debian and Ubuntu, the packages libibverbs1 and "
                                         "ibverbs-providers contain what is needed)");
  }
  Functions functions{};
  if (const char* const missing = bind_all(*library, functions)) {
    return Status(Code::unsupported, library->name() + " has no function " + missing +
                                         "; tutti needs that of rdma-core 32 or later");
  }
  return functions;
}

}  // namespace

Result<const Functions*> load() {
  static const Result<Functions> functions = load_now();
  if (!functions.ok()) return functions.status();
  return &*functions;
}

}  // namespace tutti::verbs
