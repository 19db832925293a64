#pragma once

// These are the attributes of Clang's thread-safety analysis
// (https://clang.llvm.org/docs/ThreadSafetyAnalysis.html); under other compilers they are empty. A capability
// need not be a lock: being the driving thread is also a capability. Note that libstdc++'s std::mutex is not
// annotated, so it cannot be named in TUTTI_GUARDED_BY.
#if defined(__clang__)
#define TUTTI_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define TUTTI_THREAD_ANNOTATION(x)
#endif

// On a class, this attribute says that the class is a capability. The compiler's warnings call it `name`.
#define TUTTI_CAPABILITY(name) TUTTI_THREAD_ANNOTATION(capability(name))
// On a class, this attribute says that the objects hold a capability for as long as they live.
#define TUTTI_SCOPED_CAPABILITY TUTTI_THREAD_ANNOTATION(scoped_lockable)
// On data, these attributes say that the data are touched only while the capability is held. (PT is for the
// data that a pointer points at.)
#define TUTTI_GUARDED_BY(...) TUTTI_THREAD_ANNOTATION(guarded_by(__VA_ARGS__))
#define TUTTI_PT_GUARDED_BY(...) TUTTI_THREAD_ANNOTATION(pt_guarded_by(__VA_ARGS__))
// On functions, these attributes say how the function uses a capability:
// - REQUIRES: the caller must hold it.
// - ACQUIRE and RELEASE: the function acquires or releases it.
// - TRY_ACQUIRE: the function acquires it if it returns the macro's first argument.
// - EXCLUDES: the caller must not hold it.
// - ASSERT_CAPABILITY: the function checks at run time that the caller holds it.
// - RETURN_CAPABILITY: the function returns it.
#define TUTTI_REQUIRES(...) TUTTI_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define TUTTI_ACQUIRE(...) TUTTI_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define TUTTI_RELEASE(...) TUTTI_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define TUTTI_TRY_ACQUIRE(...) TUTTI_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))
#define TUTTI_EXCLUDES(...) TUTTI_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define TUTTI_ASSERT_CAPABILITY(...) TUTTI_THREAD_ANNOTATION(assert_capability(__VA_ARGS__))
#define TUTTI_RETURN_CAPABILITY(...) TUTTI_THREAD_ANNOTATION(lock_returned(__VA_ARGS__))
// This attribute is for a function that the analysis cannot follow. A comment beside each use says why.
#define TUTTI_NO_THREAD_SAFETY_ANALYSIS TUTTI_THREAD_ANNOTATION(no_thread_safety_analysis)
