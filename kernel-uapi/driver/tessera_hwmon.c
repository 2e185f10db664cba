/* SPDX-License-Identifier: GPL-2.0-only */
/* hwmon: temperature, power and clock from the device's telemetry page. */
#include <linux/hwmon.h>

#include "tessera_drv.h"

static umode_t is_visible(const void *data, enum hwmon_sensor_types type, u32 attr,
			  int channel)
{
	return 0444;
}

static int read(struct device *dev, enum hwmon_sensor_types type, u32 attr, int channel,
		long *value)
{
	struct tessera_device *tdev = dev_get_drvdata(dev);
	struct hw_telemetry t;
	int ret = tessera_page_read(tdev, &t, NULL);

	if (ret)
		return ret;
	if (type == hwmon_temp && attr == hwmon_temp_input)
		*value = t.temperature_mc;
	else if (type == hwmon_power && attr == hwmon_power_input)
		*value = (long)t.power_mw * 1000;
	else
		return -EOPNOTSUPP;
	return 0;
}

static int read_string(struct device *dev, enum hwmon_sensor_types type, u32 attr,
		       int channel, const char **text)
{
	*text = type == hwmon_temp ? "chip" : "board";
	return 0;
}

static const struct hwmon_channel_info *const channels[] = {
	HWMON_CHANNEL_INFO(temp, HWMON_T_INPUT | HWMON_T_LABEL),
	HWMON_CHANNEL_INFO(power, HWMON_P_INPUT | HWMON_P_LABEL),
	NULL
};

static const struct hwmon_ops ops = {
	.is_visible = is_visible, .read = read, .read_string = read_string,
};

static const struct hwmon_chip_info chip = { .ops = &ops, .info = channels };

/* Ends with the binding of the PCI device. */
int tessera_hwmon_init(struct tessera_device *tdev)
{
	struct device *dev = devm_hwmon_device_register_with_info(&tdev->pdev->dev,
								  TESSERA_NAME, tdev,
								  &chip, NULL);

	return PTR_ERR_OR_ZERO(dev);
}
