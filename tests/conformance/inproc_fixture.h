#pragma once

#include "tests/conformance/channel_conformance.h"
#include "tests/support/late_transport.h"
#include "transport/inproc/factory.h"

namespace tutti::conformance {

// An `InprocFixture` connects ranks by inproc. A message that fails or is cancelled ends only after
// `polls` polls.
template <std::uint32_t polls>
class InprocFixture final : public TransportFixture {
 public:
  std::string name() const override { return "inproc"; }
  void new_world() override { hub_ = inproc::make_hub(); }
  std::unique_ptr<Transport> create(int rank, bool small_buffers, const MessageLimits& limits) override {
    auto transport =
        inproc::create({hub_, rank, small_buffers ? std::size_t{1024} : std::size_t{256 * 1024}, limits});
    if (polls == 0) return transport;
    return std::make_unique<test::LateTransport>(std::move(transport), polls);
  }

 private:
  std::shared_ptr<inproc::Hub> hub_;
};

template <std::uint32_t polls>
std::unique_ptr<TransportFixture> make_inproc_fixture() {
  return std::make_unique<InprocFixture<polls>>();
}

}  // namespace tutti::conformance
