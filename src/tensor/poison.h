// Tells AddressSanitizer which bytes of an arena nobody may touch; nothing without it.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define SLUICE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SLUICE_ASAN 1
#endif
#endif
#ifdef SLUICE_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace sluice {

#ifdef SLUICE_ASAN
inline void poison_memory(const void* at, std::size_t size) { __asan_poison_memory_region(at, size); }
inline void unpoison_memory(const void* at, std::size_t size) { __asan_unpoison_memory_region(at, size); }
#else
inline void poison_memory(const void*, std::size_t) {}
inline void unpoison_memory(const void*, std::size_t) {}
#endif

}  // namespace sluice
