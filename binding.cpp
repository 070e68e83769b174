// The module `cuda_extension`: every registration of kernels/*_binding.cpp, checked and put together.
//
// Registrations are run in the order of their names, each into a module of its own, which is then merged: so two
// registrations that define one Python name are caught, where pybind11 alone would keep the first and silently add the
// second as an overload. All that is wrong is reported as an ImportError with the places, never as an abort.
//
// Fixed infrastructure: do not edit.
#include "binding_registry.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <string>
#include <utility>
#include <vector>

// JSON text of the build facts; utils/build generates its definition.
extern "C" const char cuda_extension_build_facts[];

namespace binding_registry {
namespace {

// Constant-initialised: valid before the first dynamic initialiser of any file runs, whatever the link order.
const Registration* first_registration = nullptr;

}  // namespace

Registration::Registration(const char* name, RegisterFunction function, const char* file, int line) noexcept
    : name(name), function(function), file(file), line(line), next(first_registration) {
    first_registration = this;
}

namespace {

std::string place(const Registration& registration) {
    return std::string(registration.file) + ":" + std::to_string(registration.line);
}

std::string described(const Registration& registration) {
    return "'" + std::string(registration.name) + "' (" + place(registration) + ")";
}

[[noreturn]] void refuse(const std::string& reason) {
    throw pybind11::import_error("cuda_extension: " + reason);
}

// All registrations by name; by place within one name, so that messages do not depend on the link order.
std::vector<const Registration*> sorted_registrations() {
    std::vector<const Registration*> all;
    for (const Registration* each = first_registration; each != nullptr; each = each->next) all.push_back(each);
    std::sort(all.begin(), all.end(), [](const Registration* a, const Registration* b) {
        if (const int order = std::strcmp(a->name, b->name)) return order < 0;
        if (const int order = std::strcmp(a->file, b->file)) return order < 0;
        return a->line < b->line;
    });
    return all;
}

void check(const std::vector<const Registration*>& registrations) {
    if (registrations.empty()) {
        refuse(
            "no kernel is registered; a kernels/<name>_binding.cpp must end with REGISTER_BINDING(<name>, "
            "<function>);");
    }
    for (const Registration* each : registrations) {
        if (each->function == nullptr) refuse("the kernel " + described(*each) + " registers a null function");
    }
    const auto twin = std::adjacent_find(
        registrations.begin(), registrations.end(),
        [](const Registration* a, const Registration* b) { return std::strcmp(a->name, b->name) == 0; });
    if (twin != registrations.end()) {
        refuse("two kernels are registered as '" + std::string((*twin)->name) + "': at " + place(**twin) + " and at " +
               place(**(twin + 1)) + "; rename one of them");
    }
}

// A registration with the module it filled.
struct Filled {
    const Registration* registration;
    pybind11::module_ contents;
};

bool holds_class(const pybind11::module_& module) {
    for (const auto& item : module.attr("__dict__").cast<pybind11::dict>()) {
        if (PyType_Check(item.second.ptr())) return true;
    }
    return false;
}

// Why the function of `registration` failed. pybind11 refuses a C++ type that is registered already without saying by
// whom; `earlier` registrations of a class of that Python name, or else of any class, are the candidates.
std::string explained(const Registration& registration, const std::string& what, const std::vector<Filled>& earlier) {
    std::string reason = "the registration of " + described(registration) + " failed: " + what;
    const auto end = what.find("\" is already registered");
    const auto begin = what.find("type \"");
    if (begin == std::string::npos || end == std::string::npos) return reason;
    const std::string type = what.substr(begin + 6, end - begin - 6);
    std::string places;
    for (const bool by_name : {true, false}) {
        for (const Filled& each : earlier) {
            const bool suspect = by_name ? pybind11::hasattr(each.contents, type.c_str()) : holds_class(each.contents);
            if (suspect) places += (places.empty() ? "" : ", ") + described(*each.registration);
        }
        if (!places.empty()) break;
    }
    return "the C++ type of \"" + type + "\" is registered twice: by " + described(registration) + " and by " +
           (places.empty() ? std::string("another module in this process") : places) +
           "; register it in one binding only, or pass pybind11::module_local() to pybind11::class_ (" + what + ")";
}

pybind11::module_ filled(const Registration& registration, const std::vector<Filled>& earlier) {
    // Named like the real module, so that classes and functions say they belong to it.
    auto contents = pybind11::reinterpret_steal<pybind11::module_>(PyModule_New("cuda_extension"));
    if (!contents) throw pybind11::error_already_set();
    std::string failure;
    try {
        registration.function(contents);
        return contents;
    } catch (const std::exception& error) {  // pybind11::error_already_set, a Python exception, is one too
        failure = error.what();
    } catch (...) {
        failure = "it threw something that is not a std::exception";
    }
    refuse(explained(registration, failure, earlier));
}

bool is_module_attribute(const std::string& name) {
    static constexpr const char* names[] = {"__name__", "__doc__",  "__package__", "__loader__",
                                            "__spec__", "__file__", "__builtins__"};
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// Signatures as pybind11 writes them at the head of a function's docstring; one line for each overload.
std::vector<std::string> signatures(const std::string& name, const pybind11::handle& object) {
    std::vector<std::string> lines;
    const pybind11::object doc = pybind11::getattr(object, "__doc__", pybind11::none());
    if (PyType_Check(object.ptr())) return {"class " + name};
    if (!PyCallable_Check(object.ptr()) || !pybind11::isinstance<pybind11::str>(doc)) return {name};
    const std::string text = doc.cast<std::string>();
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        std::string line = text.substr(at, end - at);
        at = end + 1;
        // "1. f(x: int) -> int" in the docstring of an overloaded function
        if (const auto dot = line.find(". "); dot != std::string::npos && line.find_first_not_of("0123456789") == dot) {
            line.erase(0, dot + 2);
        }
        const bool whole = line.compare(0, name.size() + 1, name + "(") == 0 && line.find("->") != std::string::npos;
        if (whole && line.find("*args, **kwargs") == std::string::npos) lines.push_back(line);
    }
    if (lines.empty()) lines.push_back(name + "(...)");
    return lines;
}

void gather(pybind11::module_& module) {
    const auto registrations = sorted_registrations();
    check(registrations);

    std::vector<Filled> done;
    std::vector<std::pair<std::string, const Registration*>> owners;
    pybind11::dict kernels;
    std::string summary;
    for (const Registration* registration : registrations) {
        done.push_back({registration, filled(*registration, done)});
        const pybind11::module_& contents = done.back().contents;
        pybind11::list functions;
        summary += "\n" + std::string(registration->name) + "  (" + place(*registration) + ")\n";
        for (const auto& item : contents.attr("__dict__").cast<pybind11::dict>()) {
            const std::string name = pybind11::str(item.first);
            if (is_module_attribute(name)) continue;
            if (name == "__kernels__" || name == "__build__") {
                refuse("the kernel " + described(*registration) + " defines '" + name +
                       "', which belongs to the module");
            }
            const auto owner =
                std::find_if(owners.begin(), owners.end(), [&](const auto& each) { return each.first == name; });
            if (owner != owners.end()) {
                refuse("two kernels define the Python name '" + name + "': " + described(*owner->second) + " and " +
                       described(*registration) + "; rename one of the functions");
            }
            owners.emplace_back(name, registration);
            module.attr(name.c_str()) = pybind11::reinterpret_borrow<pybind11::object>(item.second);
            functions.append(name);
            for (const std::string& line : signatures(name, item.second)) summary += "    " + line + "\n";
        }
        pybind11::dict entry;
        entry["file"] = registration->file;
        entry["line"] = registration->line;
        entry["functions"] = pybind11::tuple(functions);
        kernels[registration->name] = entry;
    }

    const pybind11::object build =
        pybind11::module_::import("json").attr("loads")(pybind11::str(&cuda_extension_build_facts[0]));
    module.attr("__kernels__") = kernels;
    module.attr("__build__") = build;
    module.doc() = "CUDA kernels of this workspace, by registration; build facts in __build__.\n" + summary;
}

}  // namespace
}  // namespace binding_registry

PYBIND11_MODULE(cuda_extension, module) {
    // Bindings may use torch's Python types at once (a dtype as a default argument): torch must be there first.
    pybind11::module_::import("torch");
    binding_registry::gather(module);
}
