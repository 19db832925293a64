#include "collectives/schedule/algorithms/tree.h"

#include <algorithm>

namespace tutti {
namespace {

// Cuts [first, last) into k parts, as equal as possible, and returns part i.
TreeNode::Child part(int first, int last, int k, int i) {
  const int size = last - first;
  const int begin = first + i * (size / k) + std::min(i, size % k);
  const int end = begin + size / k + (i < size % k ? 1 : 0);
  return {begin, begin, end};
}

}  // namespace

TreeNode range_tree(int rank, int size, int root, int radix) {
  TreeNode node{-1, 0, size, {}};
  int first = 0;
  int last = size;
  int head = root;
  while (last - first > 1) {
    const int k = std::min(std::max(radix, 2), last - first);
    TreeNode::Child own{};
    std::vector<TreeNode::Child> left, right;
    for (int i = 0; i < k; ++i) {
      const TreeNode::Child p = part(first, last, k, i);
      if (p.first <= rank && rank < p.last) {
        own = p;
      } else {
        (p.last <= rank ? left : right).push_back(p);
      }
    }
    const bool head_is_here = own.first <= head && head < own.last;
    if (rank == head) {
      node.children.insert(node.children.end(), left.begin(), left.end());
      node.children.insert(node.children.end(), right.rbegin(), right.rend());
    } else if (!head_is_here && rank == own.first) {
      node.parent = head;
      node.first = own.first;
      node.last = own.last;
    }
    if (!head_is_here) head = own.first;
    first = own.first;
    last = own.last;
  }
  return node;
}

int tree_depth(int size, int radix) {
  const long k = std::max(radix, 2);
  int depth = 0;
  for (long reach = 1; reach < size; reach *= k) ++depth;
  return depth;
}

}  // namespace tutti
