#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>

namespace tutti::security {

// Strangers, counted by the address that they come from (of IPv6: its network, the first 64 bits). Where
// there are too many, the oldest of those goes from where most have come: whoever sends a crowd displaces
// that crowd, and not a rank of another host, which takes some round trips to say who it is.
class Crowd {
 public:
  // Lives as long as its stranger is one.
  class Member {
   public:
    Member() = default;
    Member(Crowd& crowd, int socket);
    Member(Member&& other) noexcept : crowd_(std::exchange(other.crowd_, nullptr)), origin_(other.origin_) {}
    Member& operator=(Member&& other) noexcept {
      std::swap(crowd_, other.crowd_);
      std::swap(origin_, other.origin_);
      return *this;
    }
    ~Member();

   private:
    friend class Crowd;
    Crowd* crowd_ = nullptr;
    std::uint64_t origin_ = 0;
  };

  // `member_of` says which member one of the strangers is. They are not empty, and all of the crowd.
  template <class Strangers, class MemberOf>
  auto first_to_go(Strangers& oldest_first, MemberOf member_of) const {
    std::size_t most = 0;
    for (const auto& [origin, count] : counts_) most = std::max(most, count);
    return std::find_if(oldest_first.begin(), oldest_first.end(), [&](const auto& stranger) {
      return counts_.at(member_of(stranger).origin_) == most;
    });
  }

 private:
  std::unordered_map<std::uint64_t, std::size_t> counts_;
};

}  // namespace tutti::security
