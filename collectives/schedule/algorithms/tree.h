#pragma once

#include <vector>

namespace tutti {

// A `TreeNode` is a rank's place in a k-nomial tree over contiguous ranges of ranks. Each range has
// a head; the root is the head of the whole range. A range is cut into k parts. The range's head is
// also the head of the part that contains it. The first rank of each other part becomes the head of
// that part, and a child of the range's head. Subtrees are contiguous for every root. So data in
// rank order needs no rotation, and operands are combined in rank order. If the root is rank 0 and
// the number of ranks is a power of k, this is the usual binomial or k-nomial tree. For p ranks, the
// depth is at most ceil(log_k p). It can be less, since a rank may be the head of several ranges, one
// inside the other.
struct TreeNode {
  struct Child {
    int rank;
    int first, last;  // ranks [first, last) of its subtree
  };
  int parent = -1;  // -1 at the root
  int first = 0;    // ranks [first, last) of this subtree
  int last = 0;
  // Children from earlier cuts come first; their subtrees are larger. Among the children from one
  // cut, the children to the left of this rank come before those to the right. On each side, the
  // most distant child comes first. Algorithms merge the children's ranges in reverse order, so
  // that each range adjoins the ranges that have been merged already.
  std::vector<Child> children;
};

TreeNode range_tree(int rank, int size, int root, int radix);

// Returns a bound on the depth of such a tree: the smallest d with radix^d >= size.
int tree_depth(int size, int radix);

}  // namespace tutti
