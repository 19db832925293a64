#include "rendezvous/store/tcp/store_service.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <google/protobuf/io/coded_stream.h>
#include <rendezvous/store/tcp/store.pb.h>

#include <tutti/store.h>

#include "rendezvous/store/tcp/wire.h"

namespace tutti::store_wire {
namespace {

using wire::StoreRequest;
using wire::StoreResponse;

// Each connection may have a will, so the size of a will is limited.
constexpr std::size_t most_will_bytes = 4096;

// Returns whether a request has too many keys or is malformed. The keys are counted without making an object
// for each, since the objects of a frame full of empty keys would take many times the frame's size in memory.
bool has_too_many_keys(const std::string& text) {
  google::protobuf::io::CodedInputStream input(reinterpret_cast<const std::uint8_t*>(text.data()),
                                               static_cast<int>(text.size()));
  constexpr std::uint32_t length_delimited = 2;
  std::size_t keys = 0;
  while (const std::uint32_t tag = input.ReadTag()) {
    std::uint64_t ignored = 0;
    if ((tag & 7) == length_delimited) {
      std::uint32_t length = 0;
      if (!input.ReadVarint32(&length) || !input.Skip(static_cast<int>(length))) return true;
      if (tag >> 3 == StoreRequest::kKeysFieldNumber && ++keys > max_keys_per_request) return true;
    } else if ((tag & 7) != 0 || !input.ReadVarint64(&ignored)) {
      return true;  // none of our fields has another wire type
    }
  }
  return !input.ConsumedEntireMessage();
}

}  // namespace

std::unique_ptr<StoreRequest> parse_request(const std::string& text) {
  if (has_too_many_keys(text)) return nullptr;
  auto request = std::make_unique<StoreRequest>();
  if (!request->ParseFromString(text)) return nullptr;
  const bool promises =
      request->operation() == StoreRequest::WILL || request->operation() == StoreRequest::HOLD;
  if (request->keys_size() == 0 && !promises) return nullptr;
  return request;
}

Frame StoreService::encode(const StoreResponse& response) const {
  auto text = std::make_unique<std::string>(length_bytes, '\0');
  response.AppendToString(text.get());
  const std::uint32_t length = little_endian32(static_cast<std::uint32_t>(text->size() - length_bytes));
  std::memcpy(text->data(), &length, sizeof(length));
  *frame_bytes_ += text->size();
  return Frame(text.release(), [total = frame_bytes_](const std::string* frame) {
    *total -= frame->size();
    delete frame;
  });
}

Frame StoreService::encode(const Status& status) const {
  StoreResponse response;
  response.set_code(static_cast<std::uint32_t>(status.code()));
  response.set_message(status.message());
  return encode(response);
}

Frame StoreService::encode_number(std::int64_t number) const {
  StoreResponse response;
  response.set_number(number);
  return encode(response);
}

Frame StoreService::handle(const StoreRequest& request, Parked& parked) {
  for (const std::string& key : request.keys()) {
    if (Status status = check_store_key(key); !status.ok()) return encode(status);
  }
  switch (request.operation()) {
    case StoreRequest::GET:
    case StoreRequest::WAIT:
      return handle_wait(request, parked);
    case StoreRequest::EXISTS:
      return encode_number(table_.find(request.keys(0)) != nullptr ? 1 : 0);
    case StoreRequest::HOLD:
      return handle_hold(request, parked);
    case StoreRequest::WILL:
      return handle_will(request, parked);
    default:
      return handle_change(request);
  }
}

Frame StoreService::handle_change(const StoreRequest& request) {
  const std::string& key = request.keys(0);
  Frame response;
  switch (request.operation()) {
    case StoreRequest::SET:
      response = encode(table_.set(key, request.value()));
      break;
    case StoreRequest::ADD: {
      const Result<std::int64_t> sum = table_.add(key, request.delta());
      response = sum.ok() ? encode_number(*sum) : encode(sum.status());
      break;
    }
    case StoreRequest::COMPARE_SET: {
      Result<std::string> held = table_.compare_set(key, request.expected(), request.value());
      if (!held.ok()) return encode(held.status());
      StoreResponse message;
      message.add_values(*std::move(held));
      response = encode(message);
      break;
    }
    case StoreRequest::DELETE_KEY:
      response = encode_number(table_.erase(key) ? 1 : 0);
      break;
    default:
      return encode(Status(Code::protocol_error, "unknown store operation"));
  }
  key_changed(key);
  return response;
}

Frame StoreService::handle_hold(const StoreRequest& request, Parked& parked) {
  const std::string prefix = request.keys_size() == 0 ? std::string() : request.keys(0);
  if (!prefix.empty()) ++holders_[prefix];
  let_go(parked);
  parked.held = prefix;
  return encode(Status());
}

void StoreService::let_go(Parked& parked) {
  const auto found = holders_.find(parked.held);
  parked.held.clear();
  if (found == holders_.end() || --found->second > 0) return;
  const std::string prefix = found->first + "/";
  holders_.erase(found);
  table_.erase_all_beginning_with(prefix);
  if (cached_key_.starts_with(prefix)) cached_ = nullptr;
}

// A client that connects again repeats its will, so several connections may have the same will. The will is
// executed only when the last of these connections ends. When a client cancels the will on one of these
// connections, the will is cancelled on all of them.
Frame StoreService::handle_will(const StoreRequest& request, Parked& parked) {
  if (request.ByteSizeLong() > most_will_bytes)
    return encode(
        Status(Code::invalid_argument, "a will of more than " + std::to_string(most_will_bytes) + " bytes"));
  Will will{{request.keys().begin(), request.keys().end()}, request.value()};
  if (will != parked.will) {
    wills_.erase(parked.will);
    parked.will = std::move(will);
    if (!parked.will.keys.empty()) ++wills_[parked.will];
  }
  return encode(Status());
}

void StoreService::execute_will(Parked& parked) {
  const auto found = wills_.find(parked.will);
  const Will will = std::exchange(parked.will, {});
  if (found == wills_.end() || --found->second > 0) return;
  wills_.erase(found);
  for (const std::string& key : will.keys) {
    if (table_.find(key) != nullptr || !table_.set(key, will.value).ok()) continue;
    key_changed(key);
  }
}

Frame StoreService::handle_wait(const StoreRequest& request, Parked& parked) {
  parked.keys.assign(request.keys().begin(), request.keys().end());
  parked.wants_values = request.operation() == StoreRequest::GET;
  parked.next = 0;
  if (!advance(parked)) {
    if (request.wait_milliseconds() > 0) return nullptr;
    return expire(parked);
  }
  return parked.wants_values ? values_of(parked.keys) : encode(Status());
}

bool StoreService::advance(Parked& parked) {
  const auto is_there = [this](const std::string& key) { return table_.find(key) != nullptr; };
  const auto begin = parked.keys.begin();
  auto missing =
      std::find_if_not(begin + static_cast<std::ptrdiff_t>(parked.next), parked.keys.end(), is_there);
  // The search began at `next`. The keys before it were there once, but may have been deleted since.
  if (missing == parked.keys.end()) missing = std::find_if_not(begin, parked.keys.end(), is_there);
  if (missing == parked.keys.end()) return true;
  parked.next = static_cast<std::size_t>(missing - begin);
  parked.position = waiting_.emplace(*missing, &parked);
  parked.is_parked = true;
  return false;
}

Frame StoreService::values_of(const std::vector<std::string>& keys) {
  if (keys.size() == 1 && cached_ != nullptr && cached_key_ == keys.front()) return cached_;
  StoreResponse response;
  std::size_t bytes = 0;
  for (const std::string& key : keys) {
    const std::string* value = table_.find(key);
    bytes += value->size() + 8;
    if (response.values_size() > 0 && bytes > 2 * max_store_value_bytes) break;
    response.add_values(*value);
  }
  Frame frame = encode(response);
  if (keys.size() == 1) {
    cached_key_ = keys.front();
    cached_ = frame;
  }
  return frame;
}

void StoreService::key_changed(const std::string& key) {
  if (key == cached_key_) cached_ = nullptr;
  if (table_.find(key) == nullptr) return;
  const auto [first, last] = waiting_.equal_range(key);
  std::vector<Parked*> woken;
  for (auto entry = first; entry != last; ++entry) {
    entry->second->is_parked = false;
    woken.push_back(entry->second);
  }
  waiting_.erase(first, last);
  for (Parked* parked : woken) {
    if (advance(*parked)) parked->answer(parked->wants_values ? values_of(parked->keys) : encode(Status()));
  }
}

Frame StoreService::expire(Parked& parked) {
  forget(parked);
  StoreResponse response;
  response.set_code(static_cast<std::uint32_t>(Code::timeout));
  for (const std::string& key : parked.keys) {
    if (table_.find(key) == nullptr) response.add_missing(key);
  }
  return encode(response);
}

void StoreService::leave(Parked& parked) {
  forget(parked);
  execute_will(parked);
  let_go(parked);
}

void StoreService::forget(Parked& parked) {
  if (!parked.is_parked) return;
  waiting_.erase(parked.position);
  parked.is_parked = false;
}

}  // namespace tutti::store_wire
