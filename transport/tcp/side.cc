#include "transport/tcp/side.h"

#include <algorithm>
#include <cassert>

#include <sys/epoll.h>

#include <tutti/log.h>

namespace tutti::tcp {

OutgoingSide::OutgoingSide(Context& context, int peer, std::uint8_t number, SideEvents& events)
    : context_(context), peer_(peer), number_(number), events_(events), pipe_(context.io) {}

OutgoingSide::~OutgoingSide() { close(); }

void OutgoingSide::close() {
  connector_.reset();
  count_ = 0;
  if (!open_) return;
  open_ = false;
  context_.unwatch(pipe_.native_handle());
  pipe_.close();
}

void OutgoingSide::connect(const Address& address, std::chrono::nanoseconds timeout) {
  const std::vector<Endpoint>& ours = context_.address.endpoints;
  Address one{{address.endpoints[number_ % address.endpoints.size()]}, address.nonce};
  connector_ = std::make_unique<Connector>(context_, peer_, std::move(one), timeout, *this);
  connector_->start_side(number_, ours[number_ % ours.size()].address());
}

void OutgoingSide::on_connected(Pipe pipe) {
  connector_.reset();
  pipe_ = std::move(pipe);
  open_ = context_.watch(pipe_.native_handle(), EPOLLIN, *this).ok();
  events_.on_side_room();
}

void OutgoingSide::on_connect_failed(const Status& why) {
  log::debug("tcp: lost a side connection: ", why);
  connector_.reset();
}

void OutgoingSide::on_ready(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0 && full_) {
    full_ = false;
    context_.rewatch(pipe_.native_handle(), EPOLLIN, *this);
    write();
    if (open_ && !full_) events_.on_side_room();
  } else if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) {
    // The peer never sends anything here.
    close();
    events_.on_side_lost("a side connection was closed");
  }
}

void OutgoingSide::write() {
  if (writing_ || full_) return;
  writing_ = true;
  while (open_ && count_ > 0) {
    OutgoingFrame& frame = *held_[0];
    const auto rest = frame.payload.subspan(frame.side_written);
    asio::error_code error;
    const std::size_t written = pipe_.write(rest, error);
    if (error == asio::error::would_block) {
      full_ = true;
      context_.rewatch(pipe_.native_handle(), EPOLLIN | EPOLLOUT, *this);
      break;
    }
    if (error && error != asio::error::interrupted) {
      close();
      events_.on_side_lost("a side connection broke: " + error.message());
      break;
    }
    frame.side_written += written;
    if (frame.side_written < frame.payload.size()) continue;
    held_[0] = held_[1];
    --count_;
    events_.on_side_written(frame);
  }
  writing_ = false;
}

IncomingSide::IncomingSide(Context& context, std::uint8_t number, SideEvents& events, Pipe pipe)
    : context_(context), number_(number), events_(events), pipe_(std::move(pipe)) {}

IncomingSide::~IncomingSide() { close(); }

void IncomingSide::close() {
  if (watching_) context_.unwatch(pipe_.native_handle());
  watching_ = false;
  pipe_.close();
}

Status IncomingSide::watch() {
  const Status watched = context_.watch(pipe_.native_handle(), EPOLLIN, *this);
  watching_ = watched.ok();
  return watched;
}

std::size_t IncomingSide::read(std::span<std::byte> place) {
  if (!watching_) return 0;  // closed
  asio::error_code error;
  const std::size_t got = pipe_.read(place, error);
  if (error && error != asio::error::would_block && error != asio::error::interrupted) {
    close();
    events_.on_side_lost("a side connection ended: " + error.message());
    return 0;
  }
  return got;
}

void IncomingSide::keep(std::span<const std::byte> bytes) {
  assert(bytes.size() <= kept_.size());
  std::copy(bytes.begin(), bytes.end(), kept_.begin());
  kept_bytes_ = bytes.size();
}

std::size_t IncomingSide::restore(std::span<std::byte> to) const {
  std::copy_n(kept_.begin(), kept_bytes_, to.begin());
  return kept_bytes_;
}

void IncomingSide::on_ready(std::uint32_t events) {
  if (paused_ && (events & (EPOLLHUP | EPOLLERR)) != 0) {
    close();
    events_.on_side_lost("a side connection broke");
  } else {
    events_.on_side_readable(*this);
  }
}

void IncomingSide::pause(bool on) {
  if (on == paused_ || !watching_) return;
  paused_ = on;
  context_.rewatch(pipe_.native_handle(), on ? 0u : static_cast<std::uint32_t>(EPOLLIN), *this);
}

}  // namespace tutti::tcp
