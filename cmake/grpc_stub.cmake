# oip_grpc_stub: gRPC C++ clients and servers of proto/inference.proto and proto/health.proto, over Debian's libgrpc++.
# The product links no gRPC; tests/conformance and bench/yardstick do. Not defined where libgrpc++ is missing.
include_guard(GLOBAL)
pkg_check_modules(GRPCPP QUIET IMPORTED_TARGET GLOBAL grpc++)
find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin)
if(NOT GRPCPP_FOUND OR NOT GRPC_CPP_PLUGIN)
  return()
endif()

set(out ${CMAKE_BINARY_DIR}/grpc_stub)
file(MAKE_DIRECTORY ${out})
foreach(stem inference health)
  add_custom_command(
    OUTPUT ${out}/${stem}.grpc.pb.cc ${out}/${stem}.grpc.pb.h
    COMMAND protobuf::protoc --proto_path=${CMAKE_SOURCE_DIR}/proto --grpc_out=${out}
            --plugin=protoc-gen-grpc=${GRPC_CPP_PLUGIN} ${CMAKE_SOURCE_DIR}/proto/${stem}.proto
    DEPENDS ${CMAKE_SOURCE_DIR}/proto/${stem}.proto)
endforeach()
add_library(oip_grpc_stub STATIC ${out}/inference.grpc.pb.cc ${out}/health.grpc.pb.cc)
target_include_directories(oip_grpc_stub SYSTEM PUBLIC ${out})
target_compile_options(oip_grpc_stub PRIVATE -w)
target_link_libraries(oip_grpc_stub PUBLIC sluice_proto PkgConfig::GRPCPP)
