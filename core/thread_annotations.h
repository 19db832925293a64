#pragma once

// These are the attributes of Clang's thread-safety analysis
// (https://clang.llvm.org/docs/ThreadSafetyAnalysis.html); nothing under other compilers. A capability need
// not be a lock: being the driving thread is one as well. Note that libstdc++'s std::mutex is not annotated,
// so it cannot be named in TUTTI_GUARDED_BY.
#if defined(__clang__)
#define TUTTI_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define TUTTI_THREAD_ANNOTATION(x)
#endif

// For a class that is a capability, called `name` in messages.
#define TUTTI_CAPABILITY(name) TUTTI_THREAD_ANNOTATION(capability(name))
// For a class whose objects hold a capability for as long as they live.
#define TUTTI_SCOPED_CAPABILITY TUTTI_THREAD_ANNOTATION(scoped_lockable)
// For data that is only touched while holding the capability (PT: what the pointer points at).
#define TUTTI_GUARDED_BY(...) TUTTI_THREAD_ANNOTATION(guarded_by(__VA_ARGS__))
#define TUTTI_PT_GUARDED_BY(...) TUTTI_THREAD_ANNOTATION(pt_guarded_by(__VA_ARGS__))
// For functions: the caller must hold it; acquires it; releases it; acquires it if the result equals the
// first argument; must not hold it; asserts at run time that it is held.
#define TUTTI_REQUIRES(...) TUTTI_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define TUTTI_ACQUIRE(...) TUTTI_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define TUTTI_RELEASE(...) TUTTI_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define TUTTI_TRY_ACQUIRE(...) TUTTI_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))
#define TUTTI_EXCLUDES(...) TUTTI_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define TUTTI_ASSERT_CAPABILITY(...) TUTTI_THREAD_ANNOTATION(assert_capability(__VA_ARGS__))
#define TUTTI_RETURN_CAPABILITY(...) TUTTI_THREAD_ANNOTATION(lock_returned(__VA_ARGS__))
// For a function that the analysis cannot follow; a comment next to it says why.
#define TUTTI_NO_THREAD_SAFETY_ANALYSIS TUTTI_THREAD_ANNOTATION(no_thread_safety_analysis)
