// How a kernel gets into the module `cuda_extension`: one line at the end of its kernels/<name>_binding.cpp,
//
//     void register_my_kernel(pybind11::module& m) { m.def("my_kernel_forward", &my_kernel_forward, ...); }
//     REGISTER_BINDING(my_kernel, register_my_kernel);
//
// The line records the name, the function and the place, before main and before Python sees the module. It calls
// nothing: no allocation, no exception, no CUDA. Whatever can go wrong (two kernels of one name, two functions of one
// Python name, a null function) is found later, at the module's initialisation in binding.cpp, where it can be
// reported as an ImportError that names both places.
//
// Fixed infrastructure: do not edit.
#pragma once

#include <pybind11/pybind11.h>

// The alias torch/csrc/utils/pybind.h makes as well; repeated for bindings that do without torch's header.
namespace py = pybind11;

namespace binding_registry {

using RegisterFunction = void (*)(pybind11::module_&);

// One registration: a link of an intrusive list, in the static storage of the file that registers. Destroyed never
// (the destructor is trivial), so nothing depends on the order in which files are initialised or torn down.
struct Registration {
    const char* name;
    RegisterFunction function;
    const char* file;
    int line;
    const Registration* next;

    // Puts itself at the head of the list. Defined in binding.cpp, once, so that there is one list per module.
    Registration(const char* name, RegisterFunction function, const char* file, int line) noexcept;
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;
};

}  // namespace binding_registry

#define BINDING_REGISTRY_JOIN_(a, b) a##b
#define BINDING_REGISTRY_JOIN(a, b) BINDING_REGISTRY_JOIN_(a, b)

// REGISTER_BINDING(name, function): `name` is an identifier and unique in the module, `function` is anything that
// converts to void (*)(pybind11::module&), a captureless lambda too. The variable is named after the identifier:
// the same name twice in one file does not compile.
#define REGISTER_BINDING(name, ...)                                                                                  \
    [[maybe_unused]] static ::binding_registry::Registration BINDING_REGISTRY_JOIN(binding_registration_of_, name) { \
        #name, __VA_ARGS__, __FILE__, __LINE__                                                                       \
    }
