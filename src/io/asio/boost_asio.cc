#include "io/asio/boost_asio.h"

#include <boost/asio/impl/src.hpp>
