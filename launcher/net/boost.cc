// What of Boost.Asio and Boost.Beast is no template: once in the launcher, by their SEPARATE_COMPILATION.
#include <boost/asio/impl/src.hpp>
#include <boost/beast/src.hpp>
