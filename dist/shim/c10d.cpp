// C functions for the parts of c10d that gfn-dist uses: stores, gloo groups and their operations. c10d is the
// core of torch.distributed, and is in libtorch_cpu. An exception becomes an error message, which the caller
// frees.
//
// libtorch contains no gloo headers. The headers in shim/gloo only declare the names that c10d's header
// mentions. No function of gloo is called directly.
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <cstring>
#include <optional>

namespace {

using Milliseconds = std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

template <class Work>
auto guarded(char** error, Work work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::exception& exception) {
    *error = strdup(exception.what());
  } catch (...) {
    *error = strdup("an exception of no known kind");
  }
  return {};
}

} // namespace

struct Store {
  c10::intrusive_ptr<c10d::Store> store;
};

struct Group {
  c10::intrusive_ptr<c10d::Backend> backend;
  bool (*interrupted)();
  Milliseconds patience;
  // `true` if this process has stopped waiting for an operation that still runs.
  bool stuck = false;

  // Waits until an operation has ended. After this process was asked to end, waits for at most `patience`.
  bool finish(const c10::intrusive_ptr<c10d::Work>& work) {
    std::optional<Clock::time_point> interrupted_at;
    while (!work->isCompleted()) {
      if (!interrupted_at && interrupted()) {
        interrupted_at = Clock::now();
      }
      if (interrupted_at && Clock::now() - *interrupted_at > patience) {
        stuck = true;
        throw std::runtime_error("this process was asked to end, and another one doesn't answer");
      }
      try {
        return work->wait(Milliseconds(100));
      } catch (const std::exception&) {
        // `wait` throws an exception after 100 ms, and also if the operation failed. The condition of the
        // loop and the last `wait` distinguish the two.
      }
    }
    return work->wait();
  }
};

extern "C" {

// `listener` is a socket that already listens, for the process that serves the store. It is -1 for all other
// processes.
Store* gfn_dist_store_tcp(const char* host, uint16_t port, int listener, int64_t timeout_ms, char** error) {
  return guarded(error, [&] {
    c10d::TCPStoreOptions options;
    options.port = port;
    options.isServer = listener >= 0;
    if (listener >= 0) {
      options.masterListenFd = listener;
    }
    options.waitWorkers = false;
    options.timeout = Milliseconds(timeout_ms);
    return new Store{c10::make_intrusive<c10d::TCPStore>(std::string(host), options)};
  });
}

Store* gfn_dist_store_file(const char* path, int size, char** error) {
  return guarded(error, [&] { return new Store{c10::make_intrusive<c10d::FileStore>(std::string(path), size)}; });
}

Store* gfn_dist_store_prefix(Store* store, const char* prefix, char** error) {
  return guarded(error, [&] { return new Store{c10::make_intrusive<c10d::PrefixStore>(std::string(prefix), store->store)}; });
}

void gfn_dist_store_free(Store* store) { delete store; }

void gfn_dist_store_set(Store* store, const char* key, const char* value, char** error) {
  guarded(error, [&] {
    store->store->set(std::string(key), std::string(value));
    return true;
  });
}

// Waits until a process has set this key, and returns its value. The caller frees the value.
char* gfn_dist_store_get(Store* store, const char* key, char** error) {
  return guarded(error, [&] { return strdup(store->store->get_to_str(std::string(key)).c_str()); });
}

Group* gfn_dist_group(Store* store, int rank, int size, int64_t timeout_ms, const char* address, int64_t patience_ms,
                      bool (*interrupted)(), char** error) {
  return guarded(error, [&] {
    auto options = c10d::ProcessGroupGloo::Options::create(Milliseconds(timeout_ms));
    const std::string own(address), interface("interface:");
    options->devices.push_back(
        own.rfind(interface, 0) == 0 ? c10d::ProcessGroupGloo::createDeviceForInterface(own.substr(interface.size()))
                                     : c10d::ProcessGroupGloo::createDeviceForHostname(own));
    options->threads = 2;
    store->store->setTimeout(Milliseconds(timeout_ms));
    auto backend = c10::make_intrusive<c10d::ProcessGroupGloo>(store->store, rank, size, options);
    return new Group{backend, interrupted, Milliseconds(patience_ms)};
  });
}

// A stuck group isn't freed, because c10d's destructor would wait for the operation until its timeout.
void gfn_dist_group_free(Group* group) {
  if (!group->stuck) {
    delete group;
  }
}

bool gfn_dist_all_reduce(Group* group, at::Tensor* tensor, char** error) {
  return guarded(error, [&] {
    std::vector<at::Tensor> tensors{*tensor};
    return group->finish(group->backend->allreduce(tensors));
  });
}

// `all` is a tensor with one row per rank. Each row has the same shape as `mine`.
bool gfn_dist_all_gather(Group* group, at::Tensor* mine, at::Tensor* all, char** error) {
  return guarded(error, [&] {
    std::vector<std::vector<at::Tensor>> rows{all->unbind(0)};
    std::vector<at::Tensor> tensors{*mine};
    return group->finish(group->backend->allgather(rows, tensors));
  });
}

} // extern "C"
