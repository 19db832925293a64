#pragma once

#include <vector>

namespace tutti {

// A `TreeNode` is a rank's place in a k-nomial tree over contiguous ranges of ranks. A range is cut into k
// parts; the part that has the range's head keeps it, and each other part gets its first rank as head, a
// child of that head. For every root, subtrees stay contiguous, so data in rank order needs no rotation and
// operands meet in rank order; with root 0 and a power of k it is the usual binomial or k-nomial tree. Depth:
// ceil(log_k p).
struct TreeNode {
  struct Child {
    int rank;
    int first, last;  // ranks [first, last) of its subtree
  };
  int parent = -1;  // -1: the root
  int first = 0;    // ranks [first, last) of this subtree
  int last = 0;
  // Children with the largest subtrees come first; within a level, first those further from this rank on the
  // left, then on the right. Backwards therefore, each child's range adjoins the range that is merged
  // already.
  std::vector<Child> children;
};

TreeNode range_tree(int rank, int size, int root, int radix);

// Returns the number of levels of such trees: the least d with radix^d >= size.
int tree_depth(int size, int radix);

}  // namespace tutti
