#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include <infiniband/verbs.h>

#include "tests/verbs/provider/completion_queue.h"
#include "tests/verbs/provider/device.h"
#include "tests/verbs/provider/record.h"

namespace tutti::provider {

struct SendRequest {
  std::uint64_t id = 0;
  ibv_wr_opcode opcode = IBV_WR_SEND;
  unsigned flags = 0;
  std::uint32_t immediate = 0;  // in network byte order
  std::uint64_t address = 0;    // of a write
  std::uint32_t key = 0;        // of a write, or of a window that is bound or invalidated
  ibv_mw* window = nullptr;     // the window to bind
  ibv_mw_bind_info part{};      // the memory to which the window is bound
  std::vector<ibv_sge> pieces;
  std::vector<std::byte> payload;  // of an inline request
};

struct ReceiveRequest {
  std::uint64_t id = 0;
  std::vector<ibv_sge> pieces;
};

// A `QueuePair` is a reliable connected queue pair: its states, its queues, and the completions of its
// requests. A `Wire` carries out the requests (wire.h).
class QueuePair : public ibv_qp {
 public:
  QueuePair(ibv_pd& domain, const ibv_qp_init_attr& wanted, std::uint32_t number, Record& record);

  // These return 0 or an errno, as the functions of libibverbs do.
  int modify(const ibv_qp_attr& attributes, int mask);
  int post(const ibv_send_wr& request);
  int post(const ibv_recv_wr& request);

  const ibv_qp_attr& attributes() const { return attributes_; }
  CompletionQueue& sends() const { return *static_cast<CompletionQueue*>(send_cq); }
  CompletionQueue& receives() const { return *static_cast<CompletionQueue*>(recv_cq); }
  Port* port() const { return card_of(context).port(attributes_.port_num); }
  // Returns whether the queue pair can take messages from a peer.
  bool can_receive() const { return state == IBV_QPS_RTR || state == IBV_QPS_RTS; }
  // Returns whether the queue pair may become able to receive later.
  bool may_receive_later() const { return state == IBV_QPS_RESET || state == IBV_QPS_INIT; }

  // These two functions return the oldest request that has not been carried out, or null.
  const SendRequest* next_send() const { return to_send_.empty() ? nullptr : &to_send_.front(); }
  const ReceiveRequest* next_receive() const { return to_receive_.empty() ? nullptr : &to_receive_.front(); }
  // These three functions end the oldest request. An error moves the queue pair to the error state, in which
  // its other requests are flushed.
  void end_send(ibv_wc_status status);
  void end_receive(const ibv_wc& completion, bool solicited);
  void fail_receive(ibv_wc_status status);
  // Moves the pair to the error state, in which all of its requests are flushed.
  void break_down();
  // Makes room in the queues, after completions were polled.
  void free(const CompletionQueue::Freed& freed);

 private:
  void flush();
  void add(CompletionQueue& queue, const ibv_wc& completion, const CompletionQueue::Freed& freed,
           bool solicited);
  int check(const ibv_qp_attr& attributes, int mask) const;
  void take(const ibv_qp_attr& attributes, int mask);
  void reset();

  Record& record_;
  ibv_qp_cap limits_;
  bool signal_all_;
  ibv_qp_attr attributes_{};
  std::deque<SendRequest> to_send_;
  std::deque<ReceiveRequest> to_receive_;
  std::uint32_t sends_held_ = 0;  // entries of the queues that are in use
  std::uint32_t receives_held_ = 0;
  int silent_ = 0;  // sends that have ended without a completion since the last send with a completion
};

}  // namespace tutti::provider
