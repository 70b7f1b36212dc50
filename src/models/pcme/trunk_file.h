/* The ResNet of PCME and its kin from a file of torchvision's. */
#ifndef PNB_MODELS_PCME_TRUNK_FILE_H
#define PNB_MODELS_PCME_TRUNK_FILE_H

#include "models/model.h"

/* Reads the weights, running moments and counts of a trunk from a .pth or safetensors file under
 * torchvision's names (conv1.weight, layer1.0.bn1.running_mean, ..), behind "module." or not; the
 * classifier fc is passed over. The model's weights are its own (pnb__model_make_trainable). *n
 * gets how many arrays were read.
 * Errors  ARG (a model without such a trunk), NOT_FOUND, SHAPE, FORMAT (an array that the trunk
 * lacks), those of the file */
pnb_status pnb__pcme_read_trunk(pnb_model *m, const char *path, size_t *n, pnb_error *err);

#endif
