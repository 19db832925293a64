#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tutti {

// An `IntrusiveHash` is a hash table of nodes that contain their own links and keys. It allocates memory only
// when it grows. `Traits` has three functions: `hash(node)`, and `next(node)` and `previous(node)`, which
// return references to the node's links.
template <class T, class Traits>
class IntrusiveHash {
 public:
  std::size_t size() const { return size_; }

  void insert(T& node) {
    if (size_ >= buckets_.size()) grow();
    link(node);
    ++size_;
  }

  void remove(T& node) {
    T* next = Traits::next(node);
    T* previous = Traits::previous(node);
    (previous != nullptr ? Traits::next(*previous) : bucket(Traits::hash(node))) = next;
    if (next != nullptr) Traits::previous(*next) = previous;
    Traits::next(node) = Traits::previous(node) = nullptr;
    --size_;
  }

  // Returns the first node in the bucket of `hash` for which `matches(node)` is true, or null. `matches` must
  // compare the keys, since a bucket may hold nodes with other hashes.
  template <class Matches>
  T* find(std::uint64_t hash, Matches matches) {
    if (size_ == 0) return nullptr;
    T* node = bucket(hash);
    while (node != nullptr && !matches(*node)) node = Traits::next(*node);
    return node;
  }

  // Returns any node, or null if there is none.
  T* any() {
    if (size_ == 0) return nullptr;
    return *std::find_if(buckets_.begin(), buckets_.end(), [](T* head) { return head != nullptr; });
  }

  // Calls `visit(node)` for every node. `visit` may remove that node, but no other node.
  template <class Visit>
  void for_each(Visit visit) {
    for (T* head : buckets_) {
      for (T* node = head; node != nullptr;) {
        T* next = Traits::next(*node);
        visit(*node);
        node = next;
      }
    }
  }

 private:
  // The upper half of the hash chooses the bucket, since these bits of a multiplicative hash are mixed best.
  T*& bucket(std::uint64_t hash) { return buckets_[(hash >> 32) & (buckets_.size() - 1)]; }

  void link(T& node) {
    T*& head = bucket(Traits::hash(node));
    Traits::next(node) = head;
    Traits::previous(node) = nullptr;
    if (head != nullptr) Traits::previous(*head) = &node;
    head = &node;
  }

  void grow() {
    std::vector<T*> old(std::max<std::size_t>(16, 2 * buckets_.size()), nullptr);
    old.swap(buckets_);
    for (T* node : old) {
      while (node != nullptr) {
        T* next = Traits::next(*node);
        link(*node);
        node = next;
      }
    }
  }

  std::vector<T*> buckets_;
  std::size_t size_ = 0;
};

}  // namespace tutti
