#include "rendezvous/meeting/pmix_client.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <tutti/log.h>

#include "core/fork_guard.h"
#include "core/security/digest.h"
#include "rendezvous/store/long_wait.h"

namespace tutti {
namespace {

// The goodbye may take at most this long.
constexpr std::chrono::seconds goodbye_limit{2};

// Takes the text out of a value that PMIx has made, and frees the value.
Secret take(pmix::Value* value) {
  if (value == nullptr) return {};
  Secret text;
  if (value->type == pmix::string_type && value->data.string != nullptr) {
    const std::size_t size = std::strlen(value->data.string);
    text = Secret(std::string_view(value->data.string, size));
    explicit_bzero(value->data.string, size);
    std::free(value->data.string);
  }
  std::free(value);
  return text;
}

// Passes a fence that gives every rank the texts that all ranks have put.
pmix::Outcome collecting_fence(const pmix::Api& api) {
  pmix::Info collect;
  pmix::collect_data.copy(collect.key, sizeof(collect.key) - 1);
  collect.value.type = pmix::bool_type;
  collect.value.data.flag = true;
  return api.Fence(nullptr, 0, &collect, 1);
}

}  // namespace

PmixClient::PmixClient(std::vector<std::string> libraries, int rank)
    : libraries_(std::move(libraries)), rank_(rank), born_(fork_generation()) {}

PmixClient::~PmixClient() {
  if (!spoken_ || !status_.ok() || born_ != fork_generation()) return;
  // PMIx must not end while a thread of ours is inside it.
  if ((fence_ && !fence_->has_returned()) || (request_ && !request_->call.has_returned())) return;
  const DetachedCall goodbye([api = api_] { return api.Finalize(nullptr, 0); });
  static_cast<void>(goodbye.wait({}, Deadline::after(goodbye_limit)).ok());
}

Status PmixClient::begin(std::unique_lock<std::mutex>& turn, std::function<bool()> interrupted,
                         Deadline deadline) {
  turn = std::unique_lock(mutex_, std::try_to_lock);
  if (!turn) {
    return Status(Code::invalid_argument,
                  "another thread meets ranks through the launcher's PMIx; call one init after the other, on "
                  "all ranks in the same order");
  }
  interrupted_ = std::move(interrupted);
  if (!status_.ok() || spoken_) return status_;
  return say_hello(deadline);
}

Status PmixClient::say_hello(Deadline deadline) {
  const Result<pmix::Api> api = pmix::load(libraries_);
  if (!api.ok()) {
    return fail(Status(Code::unsupported, api.status().message() +
                                              "; install it (Debian's package libpmix2), or let "
                                              "TUTTI_PMIX_LIBRARY name the launcher's libpmix.so.2"));
  }
  api_ = *api;
  Status hello = call(
      "PMIx_Init", [api = api_, self = self_] { return api.Init(self.get(), nullptr, 0); }, deadline);
  if (!hello.ok()) return hello;
  spoken_ = true;
  if (self_->rank == static_cast<std::uint32_t>(rank_)) return {};
  return fail(Status(Code::mismatch, "it says that this process is rank " + std::to_string(self_->rank) +
                                         ", not rank " + std::to_string(rank_)));
}

Status PmixClient::put(const std::string& key, const Secret& text, Deadline deadline) {
  const auto work = [api = api_, key, text]() -> pmix::Outcome {
    std::string bytes(text.reveal());
    pmix::Value value;
    value.type = pmix::string_type;
    value.data.string = bytes.data();
    const pmix::Outcome outcome = api.Put(pmix::to_all, key.c_str(), &value);
    security::wipe(bytes);
    return outcome == pmix::success ? api.Commit() : outcome;
  };
  return call("PMIx_Put", work, deadline);
}

Status PmixClient::pass_fences(std::uint64_t count, Deadline limit) {
  LongWait wait;
  const auto ask = [this, &wait] {
    if (wait.is_due()) {
      log::warn("this process has waited for ", wait.waited(),
                " for other ranks: not all have reached the launcher's fence (PMIx)");
    }
    return interrupted_ && interrupted_();
  };
  while (status_.ok() && fences_passed_ < count) {
    if (!fence_) fence_.emplace([api = api_] { return collecting_fence(api); });
    const Status passed = fence_->wait(ask, limit).status();
    if (passed.code() == Code::timeout)
      return Status(Code::timeout, "not all ranks have come to the launcher's fence within the time given");
    if (!passed.ok()) return passed;
    // A fence that has failed counts, too, since it cannot be repeated.
    fence_.reset();
    ++fences_passed_;
    request_.reset();  // a new request also finds the texts that the fence has delivered
  }
  return status_;
}

Result<Secret> PmixClient::get(const std::string& key, Deadline deadline) {
  if (!status_.ok()) return status_;
  // The request of an earlier call that gave up may still be under way.
  if (!request_ || request_->key != key) request_ = ask_for(key);
  const Result<int> outcome = request_->call.wait(interrupted_, deadline);
  if (outcome.status().code() == Code::aborted) return outcome.status();
  const std::string what = "rank 0 has not announced the session through PMIx";
  if (outcome.status().code() == Code::timeout) return Status(Code::unreachable, what);
  const Secret text = outcome.ok() ? take(*request_->value) : Secret();
  request_.reset();
  if (!outcome.ok()) return outcome.status();
  if (*outcome == pmix::success && !text.empty()) return text;
  return Status(Code::unreachable, what + " (" + api_.Error_string(*outcome) + ")");
}

PmixClient::Request PmixClient::ask_for(const std::string& key) const {
  auto value = std::make_shared<pmix::Value*>(nullptr);
  DetachedCall call([api = api_, self = self_, key, value] {
    pmix::Process first = *self;
    first.rank = 0;
    return api.Get(&first, key.c_str(), nullptr, 0, value.get());
  });
  return {key, std::move(value), std::move(call)};
}

// Calls a function of PMIx, and waits until it returns.
Status PmixClient::call(const char* function, std::function<pmix::Outcome()> work, Deadline deadline) {
  if (!status_.ok()) return status_;
  const Result<int> outcome = DetachedCall(std::move(work)).wait(interrupted_, deadline);
  if (!outcome.ok()) return fail(outcome.status().with_context(function));
  if (*outcome == pmix::success) return {};
  return fail(Status(Code::unreachable, std::string(function) + " fails: " + api_.Error_string(*outcome)));
}

// Remembers a failure, after which PMIx is not called again.
Status PmixClient::fail(const Status& status) {
  status_ = Status(Code::invalid_argument, "the launcher's PMIx cannot be used: " + status.message() +
                                               "; or set MASTER_ADDR and MASTER_PORT");
  const bool gave_up = status.code() == Code::timeout || status.code() == Code::aborted;
  return gave_up ? status : status_;
}

}  // namespace tutti
