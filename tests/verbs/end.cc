#include "tests/verbs/end.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <thread>

#include <netinet/in.h>

namespace tutti::test {
namespace {

constexpr std::size_t memory_bytes = 1 << 20;
constexpr int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND;
constexpr std::uint32_t first_packet = 7;

// Returns `pointer`, or throws if a function has returned a null pointer.
template <class T>
T* made(T* pointer, const char* what) {
  if (pointer == nullptr) throw std::system_error(errno, std::generic_category(), what);
  return pointer;
}

void check(int error, const char* what) {
  if (error != 0) throw std::system_error(error, std::generic_category(), what);
}

bool is_ipv4(const ibv_gid& gid) {
  in6_addr address;
  std::memcpy(&address, gid.raw, sizeof address);
  return IN6_IS_ADDR_V4MAPPED(&address);
}

}  // namespace

End::End(const verbs::Functions& functions, const std::string& device, Options options)
    : functions_(functions), options_(options), memory_(memory_bytes) {
  open(device);
  find_gid();
  domain_ = made(functions_.alloc_pd(context_), "ibv_alloc_pd");
  region_ = made(functions_.reg_mr(domain_, memory_.data(), memory_.size(), access), "ibv_reg_mr");
  channel_ = made(functions_.create_comp_channel(context_), "ibv_create_comp_channel");
  queue_ = made(functions_.create_cq(context_, 64, nullptr, channel_, 0), "ibv_create_cq");
  make_pair();
}

End::~End() {
  destroy_pair();
  functions_.destroy_cq(queue_);
  functions_.destroy_comp_channel(channel_);
  functions_.dereg_mr(region_);
  functions_.dealloc_pd(domain_);
  functions_.close_device(context_);
}

void End::open(const std::string& device) {
  int count = 0;
  ibv_device** const list = made(functions_.get_device_list(&count), "ibv_get_device_list");
  for (int i = 0; i < count && context_ == nullptr; ++i) {
    if (device == functions_.get_device_name(list[i])) context_ = functions_.open_device(list[i]);
  }
  functions_.free_device_list(list);
  if (context_ == nullptr) throw std::runtime_error("there is no device " + device);
  check(functions_.query_port(context_, 1, reinterpret_cast<_compat_ibv_port_attr*>(&port_)),
        "ibv_query_port");
}

// Looks for the port's RoCE v2 address that is an IPv4 address.
void End::find_gid() {
  for (int index = 0; index < port_.gid_tbl_len; ++index) {
    ibv_gid_entry entry{};
    const auto number = static_cast<std::uint32_t>(index);
    if (functions_.query_gid_ex(context_, 1, number, &entry, 0, sizeof entry) != 0) continue;
    if (entry.gid_type != IBV_GID_TYPE_ROCE_V2 || !is_ipv4(entry.gid)) continue;
    gid_ = entry;
    return;
  }
  throw std::runtime_error("the port has no address of RoCE v2 on IPv4");
}

void End::make_pair() {
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = queue_;
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap = {options_.room, options_.room, 1, 1, 64};
  pair_ = made(functions_.create_qp(domain_, &wanted), "ibv_create_qp");
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = 1;
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  check(modify(attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "INIT");
}

void End::destroy_pair() {
  if (pair_ != nullptr) functions_.destroy_qp(pair_);
  pair_ = nullptr;
}

int End::modify(ibv_qp_attr attributes, int mask) const {
  return functions_.modify_qp(pair_, &attributes, mask);
}

void End::join(End& one, End& other) {
  one.connect(other.mate());
  other.connect(one.mate());
}

End::Mate End::mate() const { return {pair_->qp_num, gid_.gid, first_packet, port_.active_mtu}; }

void End::connect(const Mate& mate) const {
  ibv_qp_attr to_receive{};
  to_receive.qp_state = IBV_QPS_RTR;
  to_receive.path_mtu = std::min(port_.active_mtu, mate.mtu);
  to_receive.dest_qp_num = mate.pair;
  to_receive.rq_psn = mate.sequence;
  to_receive.max_dest_rd_atomic = 1;
  to_receive.min_rnr_timer = 12;
  to_receive.ah_attr.is_global = 1;
  to_receive.ah_attr.port_num = 1;
  to_receive.ah_attr.grh.dgid = mate.gid;
  to_receive.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(gid_.gid_index);
  to_receive.ah_attr.grh.hop_limit = 255;
  check(modify(to_receive, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
        "RTR");
  ibv_qp_attr to_send{};
  to_send.qp_state = IBV_QPS_RTS;
  to_send.timeout = options_.timeout;
  to_send.retry_cnt = options_.retries;
  to_send.rnr_retry = options_.retries_not_ready;
  to_send.sq_psn = first_packet;
  to_send.max_rd_atomic = 1;
  check(modify(to_send, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                            IBV_QP_MAX_QP_RD_ATOMIC),
        "RTS");
}

int End::post_receive(std::uint64_t id, std::size_t bytes) const {
  ibv_sge piece{address(), static_cast<std::uint32_t>(bytes), region_->lkey};
  ibv_recv_wr request{};
  request.wr_id = id;
  request.sg_list = &piece;
  request.num_sge = bytes == 0 ? 0 : 1;
  ibv_recv_wr* bad = nullptr;
  return ibv_post_recv(pair_, &request, &bad);
}

int End::post(ibv_send_wr request, std::size_t bytes) const {
  ibv_sge piece{address(), static_cast<std::uint32_t>(bytes), region_->lkey};
  request.sg_list = &piece;
  request.num_sge = 1;
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(pair_, &request, &bad);
}

int End::post_send(std::uint64_t id, std::size_t bytes, unsigned flags) const {
  ibv_send_wr request{};
  request.wr_id = id;
  request.opcode = IBV_WR_SEND;
  request.send_flags = flags;
  return post(request, bytes);
}

int End::post_send_with_immediate(std::uint64_t id, std::size_t bytes, std::uint32_t immediate) const {
  ibv_send_wr request{};
  request.wr_id = id;
  request.opcode = IBV_WR_SEND_WITH_IMM;
  request.send_flags = IBV_SEND_SIGNALED;
  request.imm_data = htonl(immediate);
  return post(request, bytes);
}

int End::post_write(std::uint64_t id, std::size_t bytes, const End& to, std::uint32_t key,
                    unsigned flags) const {
  ibv_send_wr request{};
  request.wr_id = id;
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = flags;
  request.wr.rdma.remote_addr = to.address();
  request.wr.rdma.rkey = key;
  return post(request, bytes);
}

int End::post_write_at(std::uint64_t id, std::size_t bytes, const End& to, std::uint64_t offset,
                       std::uint32_t key) const {
  ibv_send_wr request{};
  request.wr_id = id;
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma.remote_addr = to.address() + offset;
  request.wr.rdma.rkey = key;
  return post(request, bytes);
}

int End::post_bind(std::uint64_t id, ibv_mw* window, std::uint64_t offset, std::size_t bytes,
                   std::uint32_t key) const {
  ibv_send_wr request{};
  request.wr_id = id;
  request.opcode = IBV_WR_BIND_MW;
  request.send_flags = IBV_SEND_SIGNALED;
  request.bind_mw.mw = window;
  request.bind_mw.rkey = key;
  request.bind_mw.bind_info = {region_, address() + offset, bytes, IBV_ACCESS_REMOTE_WRITE};
  return post_local(request);
}

int End::post_invalidate(std::uint64_t id, std::uint32_t key) const {
  ibv_send_wr request{};
  request.wr_id = id;
  request.opcode = IBV_WR_LOCAL_INV;
  request.send_flags = IBV_SEND_SIGNALED;
  request.invalidate_rkey = key;
  return post_local(request);
}

// Posts a request that has no data.
int End::post_local(ibv_send_wr request) const {
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(pair_, &request, &bad);
}

int End::post_write_with_immediate(std::uint64_t id, std::size_t bytes, const End& to,
                                   std::uint32_t immediate) const {
  ibv_send_wr request{};
  request.wr_id = id;
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  request.send_flags = IBV_SEND_SIGNALED;
  request.imm_data = htonl(immediate);
  request.wr.rdma.remote_addr = to.address();
  request.wr.rdma.rkey = to.remote_key();
  return post(request, bytes);
}

ibv_wc End::wait() const {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  for (ibv_wc completion{}; std::chrono::steady_clock::now() < end;) {
    if (poll(completion)) return completion;
    std::this_thread::yield();
  }
  throw std::runtime_error("there is no completion");
}

}  // namespace tutti::test
