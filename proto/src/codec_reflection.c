/*
 * Reflection over a FileDescriptorSet. The schema is small, so names are found by walking it. A
 * file is answered with all it imports, dependencies first, each once, as the tools like it.
 */
#include "codec_reflection.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "google/protobuf/descriptor.pb-c.h"
#include "grpc/reflection/v1/reflection.pb-c.h"

#include "arena.h"
#include "codec_wire.h"

#define MAX_SYMBOL 512
#define MAX_HOST 256
#define GRPC_INVALID_ARGUMENT 3
#define GRPC_NOT_FOUND 5

typedef Google__Protobuf__FileDescriptorProto file_proto;
typedef Google__Protobuf__DescriptorProto message_proto;
typedef Google__Protobuf__EnumDescriptorProto enum_proto;
typedef Google__Protobuf__ServiceDescriptorProto service_proto;
typedef Grpc__Reflection__V1__ServerReflectionRequest request_message;
typedef Grpc__Reflection__V1__ServerReflectionResponse response_message;

struct reflection {
    struct arena *arena;
    file_proto *const *files;         /* [n_files] */
    const ProtobufCBinaryData *bytes; /* [n_files] */
    size_t n_files;
};

int reflection_new(const uint8_t *set, size_t len, struct reflection **ret_reflection,
                   struct skrull_error *err)
{
    struct reflection *reflection = calloc(1, sizeof(*reflection));
    Google__Protobuf__FileDescriptorSet *message;
    ProtobufCBinaryData *bytes;
    int r;

    if (!reflection || !(reflection->arena = arena_new(SIZE_MAX))) {
        reflection_free(reflection);
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "reflection: out of memory");
    }
    r = codec_wire_decode(reflection->arena, &google__protobuf__file_descriptor_set__descriptor,
                          set, len, (ProtobufCMessage **)&message, err);
    if (r) {
        reflection_free(reflection);
        return r;
    }
    bytes = ARENA_ARRAY(reflection->arena, ProtobufCBinaryData, message->n_file);
    for (size_t i = 0; !r && bytes && i < message->n_file; i++) {
        r = codec_wire_encode(reflection->arena, &message->file[i]->base, &bytes[i].data,
                              &bytes[i].len, err);
    }
    if (r || !bytes) {
        reflection_free(reflection);
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "reflection: out of memory");
    }
    reflection->files = message->file;
    reflection->bytes = bytes;
    reflection->n_files = message->n_file;
    *ret_reflection = reflection;
    return 0;
}

void reflection_free(struct reflection *reflection)
{
    if (reflection) {
        arena_free(reflection->arena);
        free(reflection);
    }
}

/* --- names --- */

/* What is left of `symbol` behind "name."; "" where it is `name`; NULL: it begins otherwise. */
static const char *behind(const char *symbol, const char *name)
{
    size_t len = strlen(name);

    if (strncmp(symbol, name, len) != 0) {
        return NULL;
    }
    return symbol[len] == '.' ? symbol + len + 1 : symbol[len] == '\0' ? symbol + len : NULL;
}

static bool enum_declares(const enum_proto *type, const char *symbol)
{
    if (strcmp(type->name, symbol) == 0) {
        return true;
    }
    for (size_t i = 0; i < type->n_value; i++) { /* values stand beside their enum */
        if (strcmp(type->value[i]->name, symbol) == 0) {
            return true;
        }
    }
    return false;
}

/* `symbol` within the message, or the message itself (""). As deep as the schema is. */
static bool message_declares(const message_proto *type, const char *symbol)
{
    if (*symbol == '\0') {
        return true;
    }
    for (size_t i = 0; i < type->n_field; i++) {
        if (strcmp(type->field[i]->name, symbol) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < type->n_enum_type; i++) {
        if (enum_declares(type->enum_type[i], symbol)) {
            return true;
        }
    }
    for (size_t i = 0; i < type->n_nested_type; i++) {
        const char *rest = behind(symbol, type->nested_type[i]->name);

        if (rest && message_declares(type->nested_type[i], rest)) {
            return true;
        }
    }
    return false;
}

static bool service_declares(const service_proto *service, const char *symbol)
{
    bool is_found = *symbol == '\0';

    for (size_t i = 0; i < service->n_method; i++) {
        is_found = is_found || strcmp(service->method[i]->name, symbol) == 0;
    }
    return is_found;
}

static bool file_declares(const file_proto *file, const char *symbol)
{
    const char *rest;

    if (file->package && file->package[0] != '\0') {
        symbol = behind(symbol, file->package);
    }
    if (!symbol || *symbol == '\0') {
        return false;
    }
    for (size_t i = 0; i < file->n_service; i++) {
        rest = behind(symbol, file->service[i]->name);
        if (rest && service_declares(file->service[i], rest)) {
            return true;
        }
    }
    for (size_t i = 0; i < file->n_message_type; i++) {
        rest = behind(symbol, file->message_type[i]->name);
        if (rest && message_declares(file->message_type[i], rest)) {
            return true;
        }
    }
    for (size_t i = 0; i < file->n_enum_type; i++) {
        if (enum_declares(file->enum_type[i], symbol)) {
            return true;
        }
    }
    return false;
}

/* Place of the file that declares a symbol, or that has a name; n_files: none. */
static size_t find_symbol(const struct reflection *reflection, const char *symbol)
{
    size_t i = 0;

    while (i < reflection->n_files && !file_declares(reflection->files[i], symbol)) {
        i++;
    }
    return i;
}

static size_t find_file(const struct reflection *reflection, const char *name)
{
    size_t i = 0;

    while (i < reflection->n_files && strcmp(reflection->files[i]->name, name) != 0) {
        i++;
    }
    return i;
}

/* --- answers --- */

static int no_memory(struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "reflection: out of memory");
}

static int refuse(struct arena *arena, response_message *response, int code, const char *what,
                  struct skrull_error *err)
{
    Grpc__Reflection__V1__ErrorResponse *error =
        ARENA_NEW(arena, Grpc__Reflection__V1__ErrorResponse);

    if (!error) {
        return no_memory(err);
    }
    grpc__reflection__v1__error_response__init(error);
    error->error_code = code;
    error->error_message = codec_wire_borrow(what);
    response->message_response_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_ERROR_RESPONSE;
    response->error_response = error;
    return 0;
}

/* protoc writes a file behind all it imports, so the places wanted are marked from the end on and
 * given from the start on. */
static int give_files(const struct reflection *reflection, struct arena *arena,
                      response_message *response, size_t at, struct skrull_error *err)
{
    Grpc__Reflection__V1__FileDescriptorResponse *files =
        ARENA_NEW(arena, Grpc__Reflection__V1__FileDescriptorResponse);
    bool *is_wanted = ARENA_ARRAY(arena, bool, reflection->n_files + 1);

    if (at == reflection->n_files) {
        return refuse(arena, response, GRPC_NOT_FOUND, "not found", err);
    }
    if (!files || !is_wanted) {
        return no_memory(err);
    }
    grpc__reflection__v1__file_descriptor_response__init(files);
    files->file_descriptor_proto = ARENA_ARRAY(arena, ProtobufCBinaryData, at + 1);
    if (!files->file_descriptor_proto) {
        return no_memory(err);
    }
    is_wanted[at] = true;
    for (size_t i = at + 1; i-- > 0;) {
        const file_proto *file = reflection->files[i];

        for (size_t j = 0; is_wanted[i] && j < file->n_dependency; j++) {
            is_wanted[find_file(reflection, file->dependency[j])] = true;
        }
    }
    for (size_t i = 0; i <= at; i++) {
        if (is_wanted[i]) {
            files->file_descriptor_proto[files->n_file_descriptor_proto++] = reflection->bytes[i];
        }
    }
    response->message_response_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_FILE_DESCRIPTOR_RESPONSE;
    response->file_descriptor_response = files;
    return 0;
}

static char *service_name(struct arena *arena, const file_proto *file, size_t i)
{
    size_t size = strlen(file->package) + strlen(file->service[i]->name) + 2;
    char *name = arena_alloc(arena, size, 1);

    if (name) {
        (void)snprintf(name, size, "%s.%s", file->package, file->service[i]->name);
    }
    return name;
}

static int give_services(const struct reflection *reflection, struct arena *arena,
                         response_message *response, struct skrull_error *err)
{
    Grpc__Reflection__V1__ListServiceResponse *list =
        ARENA_NEW(arena, Grpc__Reflection__V1__ListServiceResponse);
    size_t n = 0;

    for (size_t i = 0; i < reflection->n_files; i++) {
        n += reflection->files[i]->n_service;
    }
    if (!list) {
        return no_memory(err);
    }
    grpc__reflection__v1__list_service_response__init(list);
    list->service = ARENA_ARRAY(arena, Grpc__Reflection__V1__ServiceResponse *, n);
    for (size_t i = 0; list->service && i < reflection->n_files; i++) {
        const file_proto *file = reflection->files[i];

        for (size_t j = 0; j < file->n_service; j++) {
            Grpc__Reflection__V1__ServiceResponse *service =
                ARENA_NEW(arena, Grpc__Reflection__V1__ServiceResponse);
            char *name = service_name(arena, file, j);

            if (!service || !name) {
                return no_memory(err);
            }
            grpc__reflection__v1__service_response__init(service);
            service->name = name;
            list->service[list->n_service++] = service;
        }
    }
    response->message_response_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_LIST_SERVICES_RESPONSE;
    response->list_services_response = list;
    return list->service ? 0 : no_memory(err);
}

/* No message of ours has extensions; those of a message that there is are an empty list. */
static int give_extensions(const struct reflection *reflection, struct arena *arena,
                           response_message *response, const char *type, struct skrull_error *err)
{
    Grpc__Reflection__V1__ExtensionNumberResponse *numbers =
        ARENA_NEW(arena, Grpc__Reflection__V1__ExtensionNumberResponse);

    if (!numbers) {
        return no_memory(err);
    }
    if (find_symbol(reflection, type) == reflection->n_files) {
        return refuse(arena, response, GRPC_NOT_FOUND, "not found", err);
    }
    grpc__reflection__v1__extension_number_response__init(numbers);
    numbers->base_type_name = codec_wire_borrow(type);
    response->message_response_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_ALL_EXTENSION_NUMBERS_RESPONSE;
    response->all_extension_numbers_response = numbers;
    return 0;
}

static int answer(const struct reflection *reflection, struct arena *arena,
                  const request_message *request, response_message *response,
                  struct skrull_error *err)
{
    switch (request->message_request_case) {
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_BY_FILENAME:
        return give_files(reflection, arena, response,
                          find_file(reflection, request->file_by_filename), err);
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_CONTAINING_SYMBOL:
        return give_files(reflection, arena, response,
                          find_symbol(reflection, request->file_containing_symbol), err);
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_CONTAINING_EXTENSION:
        return refuse(arena, response, GRPC_NOT_FOUND, "not found", err);
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_ALL_EXTENSION_NUMBERS_OF_TYPE:
        return give_extensions(reflection, arena, response, request->all_extension_numbers_of_type,
                               err);
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_LIST_SERVICES:
        return give_services(reflection, arena, response, err);
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST__NOT_SET:
    case _GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST__CASE_IS_INT_SIZE:
    default:
        return refuse(arena, response, GRPC_INVALID_ARGUMENT, "the request asks for nothing", err);
    }
}

/* The text of whichever text the request has. */
static const char *text_of(const request_message *request)
{
    switch (request->message_request_case) {
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_BY_FILENAME:
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_CONTAINING_SYMBOL:
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_ALL_EXTENSION_NUMBERS_OF_TYPE:
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_LIST_SERVICES:
        return request->file_by_filename; /* they share their place */
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_CONTAINING_EXTENSION:
        return request->file_containing_extension->containing_type;
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST__NOT_SET:
    case _GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST__CASE_IS_INT_SIZE:
    default:
        return "";
    }
}

int reflection_answer(const struct reflection *reflection, struct arena *arena,
                      struct rpc_bytes request, struct rpc_bytes *ret_response,
                      struct skrull_error *err)
{
    request_message *message;
    response_message response;
    uint8_t *bytes;
    int r = codec_wire_decode(arena, &grpc__reflection__v1__server_reflection_request__descriptor,
                              request.data, request.len, (ProtobufCMessage **)&message, err);

    if (!r) {
        r = codec_wire_check_text("host", message->host, MAX_HOST, err);
    }
    if (!r) {
        r = codec_wire_check_text("message_request", text_of(message), MAX_SYMBOL, err);
    }
    if (r) {
        return r;
    }
    grpc__reflection__v1__server_reflection_response__init(&response);
    response.valid_host = message->host;
    response.original_request = message;
    r = answer(reflection, arena, message, &response, err);
    if (!r) {
        r = codec_wire_encode(arena, &response.base, &bytes, &ret_response->len, err);
    }
    if (!r) {
        ret_response->data = bytes;
    }
    return r;
}
