#include "transport/tcp/stripe.h"

#include <algorithm>
#include <cassert>
#include <cerrno>

#include <sys/epoll.h>

#include <tutti/log.h>

#include "core/error_text.h"

namespace tutti::tcp {

OutgoingStripe::OutgoingStripe(Context& context, int peer, std::uint8_t number, StripeEvents& events)
    : context_(context), peer_(peer), number_(number), events_(events) {}

OutgoingStripe::~OutgoingStripe() { close(); }

void OutgoingStripe::close() {
  connector_.reset();
  count_ = 0;
  if (!open_) return;
  open_ = false;
  context_.unwatch(pipe_.descriptor());
  pipe_.close();
}

void OutgoingStripe::connect(const Address& address, std::chrono::nanoseconds timeout) {
  const meeting::Endpoints& ours = context_.address.endpoints;
  Address one{{address.endpoints[number_ % address.endpoints.size()]}, address.nonce};
  connector_ = std::make_unique<Connector>(context_, peer_, std::move(one), timeout, *this);
  connector_->start_stripe(number_, ours[number_ % ours.size()]);
}

void OutgoingStripe::on_connected(Pipe pipe) {
  connector_.reset();
  pipe_ = std::move(pipe);
  open_ = context_.watch(pipe_.descriptor(), EPOLLIN, *this).ok();
  events_.on_stripe_room();
}

void OutgoingStripe::on_connect_failed(const Status& why) {
  log::debug("tcp: a stripe cannot be made: ", why);
  connector_.reset();
}

void OutgoingStripe::on_ready(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0 && full_) {
    full_ = false;
    context_.rewatch(pipe_.descriptor(), EPOLLIN, *this);
    write();
    if (open_ && !full_) events_.on_stripe_room();
  } else if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) {
    // The peer never sends on a stripe that this rank opened, so any other event means that the stripe has
    // ended.
    close();
    events_.on_stripe_lost("a stripe was closed");
  }
}

void OutgoingStripe::write() {
  if (writing_ || full_) return;
  writing_ = true;
  while (open_ && count_ > 0) {
    OutgoingFrame& frame = *held_[0];
    const auto rest = frame.payload.subspan(frame.stripe_written);
    int error = 0;
    const std::size_t written = pipe_.write(rest, error);
    if (error == EAGAIN) {
      full_ = true;
      context_.rewatch(pipe_.descriptor(), EPOLLIN | EPOLLOUT, *this);
      break;
    }
    if (error != 0) {
      close();
      events_.on_stripe_lost("a stripe broke: " + error_text(error));
      break;
    }
    frame.stripe_written += written;
    if (frame.stripe_written < frame.payload.size()) continue;
    held_[0] = held_[1];
    --count_;
    events_.on_stripe_written(frame);
  }
  writing_ = false;
}

IncomingStripe::IncomingStripe(Context& context, std::uint8_t number, StripeEvents& events, Pipe pipe)
    : context_(context), number_(number), events_(events), pipe_(std::move(pipe)) {}

IncomingStripe::~IncomingStripe() { close(); }

void IncomingStripe::close() {
  if (watching_) context_.unwatch(pipe_.descriptor());
  watching_ = false;
  pipe_.close();
}

Status IncomingStripe::watch() {
  const Status watched = context_.watch(pipe_.descriptor(), EPOLLIN, *this);
  watching_ = watched.ok();
  return watched;
}

std::size_t IncomingStripe::read(std::span<std::byte> place) {
  if (!watching_) return 0;  // the stripe is closed
  int error = 0;
  const std::size_t got = pipe_.read(place, error);
  if (error != 0 && error != EAGAIN) {
    close();
    events_.on_stripe_lost(error == EPIPE ? "a stripe was closed" : "a stripe broke: " + error_text(error));
    return 0;
  }
  return got;
}

void IncomingStripe::keep(std::span<const std::byte> bytes) {
  assert(bytes.size() <= kept_.size());
  std::copy(bytes.begin(), bytes.end(), kept_.begin());
  kept_bytes_ = bytes.size();
}

std::size_t IncomingStripe::restore(std::span<std::byte> to) const {
  std::copy_n(kept_.begin(), kept_bytes_, to.begin());
  return kept_bytes_;
}

void IncomingStripe::on_ready(std::uint32_t events) {
  if (paused_ && (events & (EPOLLHUP | EPOLLERR)) != 0) {
    close();
    events_.on_stripe_lost("a stripe broke");
  } else {
    events_.on_stripe_readable(*this);
  }
}

void IncomingStripe::pause(bool on) {
  if (on == paused_ || !watching_) return;
  paused_ = on;
  context_.rewatch(pipe_.descriptor(), on ? 0u : static_cast<std::uint32_t>(EPOLLIN), *this);
}

}  // namespace tutti::tcp
