#pragma once

namespace tutti {

// An `IntrusiveList` is a queue of nodes that contain their own links, so it allocates nothing. A node is in
// at most one list at a time. A caller that removes a node must know which list the node is in.
template <class T>
class IntrusiveList {
 public:
  bool empty() const { return head_ == nullptr; }
  T* front() const { return head_; }

  void push_back(T& node) {
    node.next = nullptr;
    node.previous = tail_;
    (tail_ != nullptr ? tail_->next : head_) = &node;
    tail_ = &node;
  }

  void remove(T& node) {
    (node.previous != nullptr ? node.previous->next : head_) = node.next;
    (node.next != nullptr ? node.next->previous : tail_) = node.previous;
    node.next = node.previous = nullptr;
  }

  T* pop_front() {
    T* node = head_;
    if (node != nullptr) remove(*node);
    return node;
  }

 private:
  T* head_ = nullptr;
  T* tail_ = nullptr;
};

}  // namespace tutti
