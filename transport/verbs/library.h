#pragma once

#include <infiniband/verbs.h>

#include <tutti/status.h>

namespace tutti::verbs {

// `Functions` is the table of the functions of libibverbs that the transport calls. `ibv_post_send`,
// `ibv_post_recv`, `ibv_poll_cq` and `ibv_req_notify_cq` are not in it: they are inline, and call what
// `ibv_context::ops` points to. So the `open_device` of another table must return a context in which those
// pointers are filled in.
struct Functions {
  decltype(&ibv_fork_init) fork_init;
  decltype(&ibv_get_device_list) get_device_list;
  decltype(&ibv_free_device_list) free_device_list;
  decltype(&ibv_get_device_name) get_device_name;
  decltype(&ibv_open_device) open_device;
  decltype(&ibv_close_device) close_device;
  decltype(&ibv_query_device) query_device;
  // Takes the address of an `ibv_port_attr`, although its type names a structure that is never defined. The
  // caller first sets the attributes to zero, since an old library fills in only the first part of them.
  decltype(&ibv_query_port) query_port;
  decltype(&_ibv_query_gid_ex) query_gid_ex;
  decltype(&ibv_get_async_event) get_async_event;
  decltype(&ibv_ack_async_event) ack_async_event;
  decltype(&ibv_alloc_pd) alloc_pd;
  decltype(&ibv_dealloc_pd) dealloc_pd;
  decltype(&ibv_reg_mr) reg_mr;
  decltype(&ibv_dereg_mr) dereg_mr;
  decltype(&ibv_create_comp_channel) create_comp_channel;
  decltype(&ibv_destroy_comp_channel) destroy_comp_channel;
  decltype(&ibv_create_cq) create_cq;
  decltype(&ibv_destroy_cq) destroy_cq;
  decltype(&ibv_get_cq_event) get_cq_event;
  decltype(&ibv_ack_cq_events) ack_cq_events;
  decltype(&ibv_create_qp) create_qp;
  decltype(&ibv_modify_qp) modify_qp;
  decltype(&ibv_destroy_qp) destroy_qp;
  decltype(&ibv_wc_status_str) wc_status_str;
  decltype(&ibv_event_type_str) event_type_str;
};

// Loads libibverbs, once in a process, and returns its functions. They stay valid until the process ends.
// Fails with `unsupported`, and says why, if there is no libibverbs or if it is too old. Any thread may call
// this function.
Result<const Functions*> load();

}  // namespace tutti::verbs
