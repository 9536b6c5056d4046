// The NVIDIA driver's library, opened at run time with prototypes of our own.
#pragma once

#include <dlfcn.h>

#include <memory>
#include <string>

namespace berth {

class NvmlLibrary {
 public:
  using Device = void*;

  explicit NvmlLibrary(const std::string& name) : handle_(dlopen(name.c_str(), RTLD_NOW)) {}
  [[nodiscard]] bool is_open() const noexcept { return handle_ != nullptr; }

  /// Calls a function of the library; one that is not there fails.
  template <class... Args>
  [[nodiscard]] bool call(const char* name, Args... args) const {
    void* symbol = dlsym(handle_.get(), name);
    if (symbol == nullptr) return false;
    const auto function = reinterpret_cast<int (*)(Args...)>(symbol);
    return function(args...) == 0;
  }

 private:
  struct Close {
    void operator()(void* handle) const noexcept { dlclose(handle); }
  };
  std::unique_ptr<void, Close> handle_;
};

}  // namespace berth
